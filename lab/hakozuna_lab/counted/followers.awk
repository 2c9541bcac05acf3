# SPDX-License-Identifier: Apache-2.0
# Which words follow which, and how often: the length of the list. Reads its files.
{
  for (i = 1; i <= NF; i++) {
    count[$i]++
    after[last] = after[last] " " $i
    last = $i
  }
}
END {
  for (word in count) {
    n = split(after[word], followers, " ")
    delete seen
    for (i = 1; i <= n; i++) seen[followers[i]]++
    for (follower in seen) bytes += length(follower "=" seen[follower] ",")
  }
  print bytes
}
