# SPDX-License-Identifier: Apache-2.0
# Which words follow which, and how often: the length of the list. Reads its file.
count = Hash.new(0)
after = Hash.new { |hash, word| hash[word] = [] }
last = ""
File.foreach(ARGV[0]) do |line|
  line.split.each do |word|
    count[word] += 1
    after[last] << word
    last = word
  end
end
list = count.keys.sort_by { |word| [-count[word], word] }.map do |word|
  after[word].tally.sort.map { |follower, times| "#{follower}=#{times}" }.join(",") + "\n"
end
puts list.join.size
