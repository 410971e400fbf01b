// Accounts with passwords, and sessions of browsers: a new session at each login, none after a logout.
package main

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"html/template"
	"log"
	"net/http"
	"sync"
	"time"
)

const (
	sessionTime = 12 * time.Hour
	sessionsMax = 100_000
	iterations  = 600_000
)

type Account struct{ salt, hash []byte }

type Session struct {
	name string
	ends time.Time
}

// The digests of tokens are the keys of sessions, so that nobody who reads the memory can act in one.
var (
	mutex    sync.Mutex
	accounts = map[string]Account{}
	sessions = map[[32]byte]Session{}
)

var page = template.Must(template.New("page").Parse(`{{define "form"}}<form method='post' action='{{.}}'>` +
	`<input name='name'><input name='password' type='password'><button>Go</button></form>{{end}}` +
	`{{if .}}<p>Welcome, {{.}}.</p><form method='post' action='/logout'><button>Log out</button></form>` +
	`{{else}}<h1>Log in</h1>{{template "form" "/login"}}<h1>Register</h1>{{template "form" "/register"}}{{end}}`))

func hashOf(password string, salt []byte) []byte {
	hash, err := pbkdf2.Key(sha256.New, password, salt, iterations, 32)
	if err != nil {
		log.Panic(err)
	}
	return hash
}

func keyOf(r *http.Request) [32]byte {
	cookie, err := r.Cookie("__Host-session")
	if err != nil {
		return [32]byte{}
	}
	return sha256.Sum256([]byte(cookie.Value))
}

func nameOf(r *http.Request) string {
	mutex.Lock()
	defer mutex.Unlock()
	session := sessions[keyOf(r)]
	if session.ends.Before(time.Now()) {
		return ""
	}
	return session.name
}

func setCookie(w http.ResponseWriter, token string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: "__Host-session", Value: token, MaxAge: maxAge, Path: "/",
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func sent(w http.ResponseWriter, r *http.Request) (name, password string, isRead bool) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form is not readable.", http.StatusBadRequest)
		return "", "", false
	}
	return r.PostForm.Get("name"), r.PostForm.Get("password"), true
}

func home(w http.ResponseWriter, r *http.Request) {
	name := nameOf(r)
	if name == "" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	if err := page.Execute(w, name); err != nil {
		log.Print(err)
	}
}

func register(w http.ResponseWriter, r *http.Request) {
	name, password, isRead := sent(w, r)
	if !isRead {
		return
	}
	if name == "" || len([]rune(password)) < 12 {
		http.Error(w, "A password has 12 characters or more.", http.StatusUnprocessableEntity)
		return
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	account := Account{salt, hashOf(password, salt)}
	mutex.Lock()
	_, isTaken := accounts[name]
	if !isTaken {
		accounts[name] = account
	}
	mutex.Unlock()
	if isTaken {
		http.Error(w, "This name is taken.", http.StatusConflict)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func login(w http.ResponseWriter, r *http.Request) {
	name, password, isRead := sent(w, r)
	if !isRead {
		return
	}
	mutex.Lock()
	account, isKnown := accounts[name]
	mutex.Unlock()
	// An unknown name takes as long as a wrong password.
	matches := subtle.ConstantTimeCompare(hashOf(password, account.salt), account.hash) == 1
	if !isKnown || !matches {
		log.Printf("login refused: %q", name)
		http.Error(w, "Wrong name or password.", http.StatusUnauthorized)
		return
	}
	token := rand.Text()
	mutex.Lock()
	delete(sessions, keyOf(r))
	if len(sessions) >= sessionsMax {
		for key := range sessions {
			delete(sessions, key)
			break
		}
	}
	sessions[sha256.Sum256([]byte(token))] = Session{name, time.Now().Add(sessionTime)}
	mutex.Unlock()
	setCookie(w, token, int(sessionTime.Seconds()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func logout(w http.ResponseWriter, r *http.Request) {
	mutex.Lock()
	delete(sessions, keyOf(r))
	mutex.Unlock()
	setCookie(w, "", -1)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func main() {
	http.HandleFunc("GET /{$}", home)
	http.HandleFunc("POST /register", register)
	http.HandleFunc("POST /login", login)
	http.HandleFunc("POST /logout", logout)
	site := http.NewCrossOriginProtection().Handler(http.DefaultServeMux)
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", site))
}
