# SPDX-License-Identifier: Apache-2.0
#
# Work for ruby whose output is the same every time; run by ruby.sh.
require 'digest/sha2'
require 'json'
require 'set'
require 'zlib'

def number(state) = (state * 1_103_515_245 + 12_345) % 2_147_483_648

def churn(seed)
  state = seed
  live = {}
  15_000.times do |step|
    state = number(state)
    key = state % 700
    case (state >> 16) % 5
    when 0 then live[key] = 'x' * (state % 3000)
    when 1 then live[key] = (0..state % 300).to_a
    when 2 then live[key] = (0..state % 40).to_h { |i| ["k#{i}", i * step] }
    when 3 then live[key] = :"symbol#{state % 1000}".to_s.succ
    else live.delete(key)
    end
  end
  Digest::SHA256.hexdigest(JSON.generate(live.sort_by(&:first)))
end

puts (1..4).map { |seed| Thread.new { churn(seed) } }.map(&:value)
GC.start
GC.compact if GC.respond_to?(:compact)
puts churn(5)

document = (0...4000).map { |i| { 'id' => i, 'tags' => (0..i % 20).map(&:to_s), 'body' => 'z' * (i % 333) } }
copy = Marshal.load(Marshal.dump(JSON.parse(JSON.generate(document))))
puts copy == document, copy.size

text = (0...30_000).map { |i| "word#{i * 7919 % 1013}" }.join(' ')
puts text.scan(/word(\d)\d*\1/).size, text.gsub(/[aeiou](\w)/) { $1.upcase }.hash == 0, text.split.to_set.size
packed = Zlib::Deflate.deflate(text * 20, 9)
puts packed.bytesize, Zlib::Inflate.inflate(packed) == text * 20

puts (1..600).inject(:*).to_s.size, (2**20_000).digits.sum

fibers = (0...500).map { |i| Fiber.new { 5.times { |j| Fiber.yield('f' * (i + j)) } } }
puts 5.times.sum { fibers.sum { |fiber| fiber.resume.size } }

reader, writer = IO.pipe
child = fork do
  reader.close
  writer.puts churn(6)
  GC.start
  exit! 0
end
writer.close
puts reader.read
Process.wait(child)
puts $?.success?
puts `echo from a child`
