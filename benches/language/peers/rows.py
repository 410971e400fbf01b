"""The rows of the benchmark in Python: for each name how to make the data, and how to run the row."""

import csv
import gc
import html
import io
import json
import sys
import time


class Person:
    __slots__ = ("name", "age", "score")

    def __init__(self, name, age, score):
        self.name = name
        self.age = age
        self.score = score


def same(size):
    return size


def make_people(size):
    return [Person(f"name{i * 7919 % 1000}", i % 90, 0.5) for i in range(size)]


def group(people):
    counts = {}
    for p in people:
        counts[p.name] = counts.get(p.name, 0) + 1
    return len(counts) * 10000000 + counts.get("name7", 0)


def build_list(size):
    all = []
    for i in range(size):
        all.append(i * 2)
    return len(all) + all[-1]


def build_text(size):
    all = ""
    for i in range(size):
        all += f"<{i % 10}>"
    return len(all)


def build_map(size):
    all = {}
    for i in range(size):
        all[i] = i * 2
    return len(all) + all.get(7, 0)


def make_page(size):
    return " ".join(f"word{i * 7919 % 5003}" for i in range(size))


def words(page):
    counts = {}
    for word in page.split():
        counts[word] = counts.get(word, 0) + 1
    return len(counts) * 100000 + counts.get("word7", 0)


def make_numbers(size):
    return list(range(size))


def group_by(numbers):
    groups = {}
    for i in numbers:
        groups.setdefault(i % 1000, []).append(i)
    return len(groups) + max(len(group) for group in groups.values())


def make_pairs(size):
    return [(i * 7919 % 1000003, f"name{i % 100}") for i in range(size)]


def sort(pairs):
    ordered = sorted(pairs)
    return ordered[0][0] + ordered[len(ordered) // 2][0]


def make_json(size):
    items = [{"id": i, "name": f"item {i}", "price": 0.25, "tags": ["a", f"b{i % 10}"]} for i in range(size)]
    return json.dumps(items, separators=(",", ":"))


def run_json(document):
    changed = []
    for item in json.loads(document):
        name = item["name"]
        changed.append({"id": item["id"] + 1, "name": name.upper(), "price": item["price"] * 2.0, "tags": [name]})
    return len(json.dumps(changed, separators=(",", ":")))


def make_csv(size):
    return "id,city,amount\n" + "\n".join(f"{i},city{i * 31 % 97},{i % 1000}" for i in range(size)) + "\n"


def run_csv(table):
    sums = {}
    for row in csv.DictReader(io.StringIO(table)):
        city = row["city"]
        sums[city] = sums.get(city, 0) + int(row["amount"])
    return len(sums) * 1000000000 + sums.get("city5", 0)


def make_names(size):
    return [f"<name> & {i}" for i in range(size)]


def template(names):
    rows = [f'<li class="row"><b>{html.escape(name)}</b></li>' for name in names]
    return len("<ul>" + "\n".join(rows) + "</ul>")


def integer_loop(n):
    i, sum = 0, 0
    while True:
        i, sum = i + 1, (sum + i * i) % 1000003
        if i >= n:
            return sum


def collatz(size):
    longest = 0
    for start in range(1, size):
        n, steps = start, 1
        while True:
            n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
            if n == 1:
                break
        longest = max(longest, steps)
    return longest


def make_records(size):
    return [Person(f"name{i % 1000}", i % 90, i / 2) for i in range(size)]


def nothing(_):
    return 0


ROWS = {
    "group": (make_people, group),
    "build_list": (same, build_list),
    "build_text": (same, build_text),
    "build_map": (same, build_map),
    "words": (make_page, words),
    "group_by": (make_numbers, group_by),
    "sort": (make_pairs, sort),
    "json": (make_json, run_json),
    "csv": (make_csv, run_csv),
    "template": (make_names, template),
    "integer_loop": (same, integer_loop),
    "collatz": (same, collatz),
    "memory_records": (make_records, nothing),
    "memory_ints": (make_numbers, nothing),
}


def main():
    make, run = ROWS[sys.argv[1]]
    print("begin", flush=True)
    sys.stdin.readline()
    data = make(int(sys.argv[2]))
    gc.collect()
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter_ns()
        result = run(data)
        print(time.perf_counter_ns() - begun, result, flush=True)


main()
