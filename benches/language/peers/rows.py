"""The rows of the benchmark in Python: for each name how to make the data, and how to run the row."""

import csv
import gc
import html
import io
import json
import math
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


def sieve(size):
    is_prime = [True] * size
    i = 2
    while i * i < size:
        if is_prime[i]:
            j = i * i
            while j < size:
                is_prime[j] = False
                j += i
        i += 1
    count = -2
    for prime in is_prime:
        if prime:
            count += 1
    return count


class Body:
    __slots__ = ("x", "y", "z", "vx", "vy", "vz", "mass")

    def __init__(self, x, y, z, vx, vy, vz, mass):
        self.x = x
        self.y = y
        self.z = z
        self.vx = vx
        self.vy = vy
        self.vz = vz
        self.mass = mass


def moved(bodies):
    result = []
    for b in bodies:
        ax = ay = az = 0.0
        for o in bodies:
            dx = o.x - b.x
            dy = o.y - b.y
            dz = o.z - b.z
            square = dx * dx + dy * dy + dz * dz + 0.01
            strength = o.mass / (square * math.sqrt(square))
            ax += dx * strength
            ay += dy * strength
            az += dz * strength
        vx = b.vx + 0.001 * ax
        vy = b.vy + 0.001 * ay
        vz = b.vz + 0.001 * az
        result.append(Body(b.x + 0.001 * vx, b.y + 0.001 * vy, b.z + 0.001 * vz, vx, vy, vz, b.mass))
    return result


def n_body(size):
    bodies = [
        Body(f, 10.0 / f, f * f / 7.0, 0.1 * f, 0.3 / f, 0.0, 0.5 + f) for f in (1.0, 2.0, 3.0, 4.0, 5.0)
    ]
    for _ in range(size):
        bodies = moved(bodies)
    total = 0.0
    for b in bodies:
        total += b.mass * (b.vx * b.vx + b.vy * b.vy + b.vz * b.vz)
    return int(total * 1000000.0)


def element(i, j):
    return 1.0 / float((i + j) * (i + j + 1) // 2 + i + 1)


def multiplied(vector, size):
    result = []
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += element(i, j) * vector[j]
        result.append(total)
    return result


def multiplied_transposed(vector, size):
    result = []
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += element(j, i) * vector[j]
        result.append(total)
    return result


def spectral_norm(size):
    u = v = [1.0] * size
    for _ in range(10):
        v = multiplied_transposed(multiplied(u, size), size)
        u = multiplied_transposed(multiplied(v, size), size)
    uv = vv = 0.0
    for i in range(size):
        uv += u[i] * v[i]
        vv += v[i] * v[i]
    return int(math.sqrt(uv / vv) * 1000000.0)


def is_inside(x, y):
    a = b = 0.0
    for _ in range(50):
        a, b = a * a - b * b + x, 2.0 * a * b + y
        if a * a + b * b > 4.0:
            break
    return a * a + b * b <= 4.0


def mandelbrot(size):
    count = 0
    for i in range(size):
        for j in range(size):
            if is_inside(3.0 * float(i) / float(size) - 2.0, 2.0 * float(j) / float(size) - 1.0):
                count += 1
    return count


def matrix(size):
    rows = [[float((i * j) % 17) for j in range(size)] for i in range(size)]
    columns = [[float((i + j) % 13) for j in range(size)] for i in range(size)]
    product = []
    for row in rows:
        made = []
        for column in columns:
            total = 0.0
            for k in range(size):
                total += row[k] * column[k]
            made.append(total)
        product.append(made)
    trace = 0.0
    for i in range(size):
        trace += product[i][i]
    return int(trace)


def levenshtein(size):
    a = [i * 7919 % 26 for i in range(size)]
    b = [i * 104729 % 29 for i in range(size)]
    previous = list(range(size + 1))
    for i, x in enumerate(a, 1):
        row, left = [i], i
        for j, y in enumerate(b):
            replaced = previous[j] + (0 if x == y else 1)
            removed = previous[j + 1] + 1
            added = left + 1
            less = added if added < removed else removed
            left = replaced if replaced < less else less
            row.append(left)
        previous = row
    return previous[size]


def make_records(size):
    return [Person(f"name{i % 1000}", i % 90, i / 2) for i in range(size)]


class Point:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x = x
        self.y = y
        self.z = z


def make_points(size):
    return [Point(i, i % 90, 2 * i) for i in range(size)]


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
    "sieve": (same, sieve),
    "n_body": (same, n_body),
    "spectral_norm": (same, spectral_norm),
    "mandelbrot": (same, mandelbrot),
    "matrix": (same, matrix),
    "levenshtein": (same, levenshtein),
    "memory_records": (make_records, nothing),
    "memory_points": (make_points, nothing),
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
