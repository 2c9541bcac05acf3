-- SPDX-License-Identifier: Apache-2.0
--
-- Work for lua (5.1 and newer) whose output is the same every time; run by lua.sh.
local state = 12345
local function number(n)
  state = (state * 16807) % 2147483647
  return state % n
end

local function checksum(text)
  local sum = 1
  for i = 1, #text do sum = (sum * 31 + text:byte(i)) % 1000000007 end
  return sum
end

for round = 1, 6 do
  local live = {}
  for _ = 1, 40000 do
    local key, kind = number(900), number(4)
    if kind == 0 then
      live[key] = string.rep("x", number(2000))
    elseif kind == 1 then
      local list = {}
      for i = 1, number(120) do list[i] = i * key end
      live[key] = list
    elseif kind == 2 then
      live[key] = function() return key end
    else
      live[key] = nil
    end
  end
  local sum = 0
  for key = 0, 899 do
    local value = live[key]
    if type(value) == "string" then sum = sum + #value
    elseif type(value) == "table" then sum = sum + #value * 3
    elseif type(value) == "function" then sum = sum + value() end
  end
  print(round, sum)
end
collectgarbage()

local words = {}
for i = 1, 60000 do words[i] = "word" .. number(5000) end
table.sort(words)
local text = table.concat(words, " ")
print(#text, checksum(text:sub(1, 50000)), select(2, text:gsub("(%d)%d*%1", "<%0>")))

local buffer = ""
for i = 1, 3000 do buffer = buffer .. i .. "," end
print(#buffer, checksum(buffer))

local routines, total = {}, 0
for i = 1, 3000 do
  routines[i] = coroutine.wrap(function() for j = 1, 4 do coroutine.yield(string.rep("c", i % 50 + j)) end end)
end
for _ = 1, 4 do
  for i = 1, #routines do total = total + #routines[i]() end
end
print(total)

local tree = {}
for i = 1, 100000 do tree = { tree, i } end
local depth = 0
while tree[1] do tree, depth = tree[1], depth + 1 end
print(depth)
