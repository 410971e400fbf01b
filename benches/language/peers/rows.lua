-- The rows of the benchmark in Lua, for LuaJIT: for each name how to make the data, and how to run the row. Rows that need
-- a library for JSON or CSV are missing.

local ffi = require("ffi")
ffi.cdef([[
typedef struct { long seconds; long nanoseconds; } benchmark_time;
int clock_gettime(int clock, benchmark_time *time);
]])

local floor = math.floor

local function now()
  local time = ffi.new("benchmark_time")
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) * 1e9 + tonumber(time.nanoseconds)
end

local function same(size)
  return size
end

local function numbers(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = i
  end
  return all
end

local function people(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = { name = "name" .. i * 7919 % 1000, age = i % 90, score = 0.5 }
  end
  return all
end

local function entries(map)
  local count = 0
  for _ in pairs(map) do
    count = count + 1
  end
  return count
end

local function group(all)
  local counts = {}
  for _, p in ipairs(all) do
    counts[p.name] = (counts[p.name] or 0) + 1
  end
  return entries(counts) * 10000000 + (counts.name7 or 0)
end

local function build_list(size)
  local all = {}
  for i = 0, size - 1 do
    all[#all + 1] = i * 2
  end
  return #all + all[#all]
end

local function build_text(size)
  local parts = {}
  for i = 0, size - 1 do
    parts[#parts + 1] = "<" .. i % 10 .. ">"
  end
  return #table.concat(parts)
end

local function build_map(size)
  local all, length = {}, 0
  for i = 0, size - 1 do
    -- Keys that are whole numbers from 1 on would be an array.
    all[i + 0.5] = i * 2
    length = length + 1
  end
  return length + (all[7.5] or 0)
end

local function page(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = "word" .. i * 7919 % 5003
  end
  return table.concat(all, " ")
end

local function words(text)
  local counts = {}
  for word in text:gmatch("%S+") do
    counts[word] = (counts[word] or 0) + 1
  end
  return entries(counts) * 100000 + (counts.word7 or 0)
end

local function group_by(all)
  local groups = {}
  for _, i in ipairs(all) do
    local members = groups[i % 1000]
    if not members then
      members = {}
      groups[i % 1000] = members
    end
    members[#members + 1] = i
  end
  local longest = 0
  for _, members in pairs(groups) do
    longest = math.max(longest, #members)
  end
  return entries(groups) + longest
end

local function number_pairs(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = { i * 7919 % 1000003, "name" .. i % 100 }
  end
  return all
end

local function sort(all)
  local ordered = {}
  for i, pair in ipairs(all) do
    ordered[i] = pair
  end
  table.sort(ordered, function(a, b)
    if a[1] ~= b[1] then
      return a[1] < b[1]
    end
    return a[2] < b[2]
  end)
  return ordered[1][1] + ordered[floor(#ordered / 2) + 1][1]
end

local function names(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = "<name> & " .. i
  end
  return all
end

local ESCAPES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function template(all)
  local rows = {}
  for i, name in ipairs(all) do
    rows[i] = '<li class="row"><b>' .. name:gsub("[&<>\"']", ESCAPES) .. "</b></li>"
  end
  return #("<ul>" .. table.concat(rows, "\n") .. "</ul>")
end

local function integer_loop(n)
  local i, sum = 0, 0
  repeat
    i, sum = i + 1, (sum + i * i) % 1000003
  until i >= n
  return sum
end

local function collatz(size)
  local longest = 0
  for start = 1, size - 1 do
    local n, steps = start, 1
    repeat
      n, steps = n % 2 == 0 and n / 2 or 3 * n + 1, steps + 1
    until n == 1
    longest = math.max(longest, steps)
  end
  return longest
end

local function sieve(size)
  local is_prime = {}
  for i = 1, size do
    is_prime[i] = true
  end
  local i = 2
  while i * i < size do
    if is_prime[i + 1] then
      for j = i * i, size - 1, i do
        is_prime[j + 1] = false
      end
    end
    i = i + 1
  end
  local count = -2
  for _, prime in ipairs(is_prime) do
    if prime then
      count = count + 1
    end
  end
  return count
end

local function moved(bodies)
  local result = {}
  for index, b in ipairs(bodies) do
    local ax, ay, az = 0, 0, 0
    for _, o in ipairs(bodies) do
      local dx, dy, dz = o.x - b.x, o.y - b.y, o.z - b.z
      local square = dx * dx + dy * dy + dz * dz + 0.01
      local strength = o.mass / (square * math.sqrt(square))
      ax, ay, az = ax + dx * strength, ay + dy * strength, az + dz * strength
    end
    local vx, vy, vz = b.vx + 0.001 * ax, b.vy + 0.001 * ay, b.vz + 0.001 * az
    local x, y, z = b.x + 0.001 * vx, b.y + 0.001 * vy, b.z + 0.001 * vz
    result[index] = { x = x, y = y, z = z, vx = vx, vy = vy, vz = vz, mass = b.mass }
  end
  return result
end

local function n_body(size)
  local bodies = {}
  for f = 1, 5 do
    bodies[f] = { x = f, y = 10 / f, z = f * f / 7, vx = 0.1 * f, vy = 0.3 / f, vz = 0, mass = 0.5 + f }
  end
  for _ = 1, size do
    bodies = moved(bodies)
  end
  local total = 0
  for _, b in ipairs(bodies) do
    total = total + b.mass * (b.vx * b.vx + b.vy * b.vy + b.vz * b.vz)
  end
  return floor(total * 1000000)
end

local function element(i, j)
  return 1 / (floor((i + j) * (i + j + 1) / 2) + i + 1)
end

local function multiplied(vector, size)
  local result = {}
  for i = 0, size - 1 do
    local total = 0
    for j = 0, size - 1 do
      total = total + element(i, j) * vector[j + 1]
    end
    result[i + 1] = total
  end
  return result
end

local function multiplied_transposed(vector, size)
  local result = {}
  for i = 0, size - 1 do
    local total = 0
    for j = 0, size - 1 do
      total = total + element(j, i) * vector[j + 1]
    end
    result[i + 1] = total
  end
  return result
end

local function spectral_norm(size)
  local u, v = {}, {}
  for i = 1, size do
    u[i] = 1
  end
  for _ = 1, 10 do
    v = multiplied_transposed(multiplied(u, size), size)
    u = multiplied_transposed(multiplied(v, size), size)
  end
  local uv, vv = 0, 0
  for i = 1, size do
    uv = uv + u[i] * v[i]
    vv = vv + v[i] * v[i]
  end
  return floor(math.sqrt(uv / vv) * 1000000)
end

local function is_inside(x, y)
  local a, b = 0, 0
  for _ = 1, 50 do
    a, b = a * a - b * b + x, 2 * a * b + y
    if a * a + b * b > 4 then
      break
    end
  end
  return a * a + b * b <= 4
end

local function mandelbrot(size)
  local count = 0
  for i = 0, size - 1 do
    for j = 0, size - 1 do
      if is_inside(3 * i / size - 2, 2 * j / size - 1) then
        count = count + 1
      end
    end
  end
  return count
end

local function matrix(size)
  local rows, columns, product = {}, {}, {}
  for i = 0, size - 1 do
    rows[i + 1], columns[i + 1] = {}, {}
    for j = 0, size - 1 do
      rows[i + 1][j + 1] = i * j % 17
      columns[i + 1][j + 1] = (i + j) % 13
    end
  end
  for i, row in ipairs(rows) do
    local made = {}
    for j, column in ipairs(columns) do
      local total = 0
      for k = 1, size do
        total = total + row[k] * column[k]
      end
      made[j] = total
    end
    product[i] = made
  end
  local trace = 0
  for i = 1, size do
    trace = trace + product[i][i]
  end
  return trace
end

local function levenshtein(size)
  local a, b, previous = {}, {}, {}
  for i = 0, size - 1 do
    a[i + 1], b[i + 1] = i * 7919 % 26, i * 104729 % 29
  end
  for i = 0, size do
    previous[i + 1] = i
  end
  for i, x in ipairs(a) do
    local row, left = { i }, i
    for j, y in ipairs(b) do
      local replaced = previous[j] + (x == y and 0 or 1)
      local removed = previous[j + 1] + 1
      local added = left + 1
      local less = added < removed and added or removed
      left = replaced < less and replaced or less
      row[#row + 1] = left
    end
    previous = row
  end
  return previous[size + 1]
end

local function records(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = { name = "name" .. i % 1000, age = i % 90, score = i / 2 }
  end
  return all
end

local function points(size)
  local all = {}
  for i = 0, size - 1 do
    all[i + 1] = { x = i, y = i % 90, z = 2 * i }
  end
  return all
end

local function nothing()
  return 0
end

local ROWS = {
  group = { people, group },
  build_list = { same, build_list },
  build_text = { same, build_text },
  build_map = { same, build_map },
  words = { page, words },
  group_by = { numbers, group_by },
  sort = { number_pairs, sort },
  template = { names, template },
  integer_loop = { same, integer_loop },
  collatz = { same, collatz },
  sieve = { same, sieve },
  n_body = { same, n_body },
  spectral_norm = { same, spectral_norm },
  mandelbrot = { same, mandelbrot },
  matrix = { same, matrix },
  levenshtein = { same, levenshtein },
  memory_records = { records, nothing },
  memory_points = { points, nothing },
  memory_ints = { numbers, nothing },
}

local make, run = unpack(ROWS[arg[1]])
io.stdout:write("begin\n")
io.stdout:flush()
io.read("*l")
local data = make(tonumber(arg[2]))
collectgarbage()
io.stdout:write("ready\n")
io.stdout:flush()
for _ in io.lines() do
  local begun = now()
  local result = run(data)
  io.stdout:write(string.format("%.0f %.0f\n", now() - begun, result))
  io.stdout:flush()
end
