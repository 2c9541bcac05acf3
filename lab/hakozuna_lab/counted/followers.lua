-- SPDX-License-Identifier: Apache-2.0
-- Which words follow which, and how often: the length of the list. Reads its file.
local count, after, last = {}, {}, ""
for line in io.lines(arg[1]) do
  for word in line:gmatch("%S+") do
    count[word] = (count[word] or 0) + 1
    local all = after[last] or {}
    after[last] = all
    all[#all + 1] = word
    last = word
  end
end
local words = {}
for word in pairs(count) do words[#words + 1] = word end
table.sort(words, function(a, b) return count[a] > count[b] or count[a] == count[b] and a < b end)
local list = {}
for _, word in ipairs(words) do
  local seen, pairs_of = {}, {}
  for _, next in ipairs(after[word] or {}) do seen[next] = (seen[next] or 0) + 1 end
  for next, times in pairs(seen) do pairs_of[#pairs_of + 1] = next .. "=" .. times end
  table.sort(pairs_of)
  list[#list + 1] = table.concat(pairs_of, ",") .. "\n"
end
print(#table.concat(list))
