// To-do lists as a JSON interface. Every error is an object with a title, a status and a detail (RFC 9457).
package main

import (
	"encoding/json"
	"errors"
	"log"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

type Todo struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Done  bool   `json:"done"`
}

type Draft struct {
	Title *string `json:"title"`
	Done  *bool   `json:"done"`
}

type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string { return p.Detail }

func problem(status int, detail string) *Problem {
	return &Problem{http.StatusText(status), status, detail}
}

const todosMax = 10_000

type Store struct {
	mutex sync.Mutex
	todos []Todo // in the order of their numbers
	last  int
}

func (s *Store) index(id int) (int, error) {
	at := slices.IndexFunc(s.todos, func(todo Todo) bool { return todo.ID == id })
	if at < 0 {
		return 0, problem(http.StatusNotFound, "There is no to-do "+strconv.Itoa(id)+".")
	}
	return at, nil
}

func draft(r *http.Request) (Draft, error) {
	var draft Draft
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return draft, problem(http.StatusUnsupportedMediaType, "The body is no JSON.")
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 16<<10)).Decode(&draft); err != nil {
		return draft, problem(http.StatusBadRequest, err.Error())
	}
	if draft.Title == nil || draft.Done == nil {
		return draft, problem(http.StatusBadRequest, "A to-do has the fields `title` and `done`.")
	}
	if strings.TrimSpace(*draft.Title) == "" {
		return draft, problem(http.StatusUnprocessableEntity, "A to-do has a title.")
	}
	return draft, nil
}

func id(r *http.Request) (int, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return 0, problem(http.StatusBadRequest, "The number of a to-do is a whole number.")
	}
	return id, nil
}

func (s *Store) list(r *http.Request) (int, any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := slices.Clone(s.todos)
	if given := r.URL.Query().Get("done"); given != "" {
		done, err := strconv.ParseBool(given)
		if err != nil {
			return 0, nil, problem(http.StatusBadRequest, "`done` is `true` or `false`.")
		}
		all = slices.DeleteFunc(all, func(todo Todo) bool { return todo.Done != done })
	}
	return http.StatusOK, append([]Todo{}, all...), nil
}

func (s *Store) add(r *http.Request) (int, any, error) {
	draft, err := draft(r)
	if err != nil {
		return 0, nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last++
	todo := Todo{s.last, *draft.Title, *draft.Done}
	s.todos = append(s.todos, todo)
	if len(s.todos) > todosMax {
		s.todos = s.todos[1:]
	}
	return http.StatusCreated, todo, nil
}

func (s *Store) get(r *http.Request) (int, any, error) {
	id, err := id(r)
	if err != nil {
		return 0, nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at, err := s.index(id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.todos[at], nil
}

func (s *Store) replace(r *http.Request) (int, any, error) {
	id, err := id(r)
	if err != nil {
		return 0, nil, err
	}
	draft, err := draft(r)
	if err != nil {
		return 0, nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at, err := s.index(id)
	if err != nil {
		return 0, nil, err
	}
	s.todos[at] = Todo{id, *draft.Title, *draft.Done}
	return http.StatusOK, s.todos[at], nil
}

func (s *Store) remove(r *http.Request) (int, any, error) {
	id, err := id(r)
	if err != nil {
		return 0, nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at, err := s.index(id)
	if err != nil {
		return 0, nil, err
	}
	todo := s.todos[at]
	s.todos = slices.Delete(s.todos, at, at+1)
	return http.StatusOK, todo, nil
}

func handler(handle func(*http.Request) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, answer, err := handle(r)
		kind := "application/json"
		if err != nil {
			found := problem(http.StatusInternalServerError, "The server failed.")
			errors.As(err, &found)
			status, answer, kind = found.Status, found, "application/problem+json"
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Print(err)
		}
	}
}

func main() {
	store := &Store{}
	http.Handle("GET /todos", handler(store.list))
	http.Handle("POST /todos", handler(store.add))
	http.Handle("GET /todos/{id}", handler(store.get))
	http.Handle("PUT /todos/{id}", handler(store.replace))
	http.Handle("DELETE /todos/{id}", handler(store.remove))
	http.Handle("/", handler(func(*http.Request) (int, any, error) {
		return 0, nil, problem(http.StatusNotFound, "There is no such page.")
	}))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", nil))
}
