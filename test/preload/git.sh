# SPDX-License-Identifier: Apache-2.0
#
# git: many files, commits, a branch, a merge, gc and fsck. Author and dates are fixed, so every hash must be the same.
. "$(dirname "$0")/lib.sh"
need git awk
version "$(git --version | cut -d' ' -f3)"
export HOME="$work/home" GIT_CONFIG_NOSYSTEM=1 XDG_CONFIG_HOME="$work/home"
export GIT_AUTHOR_NAME=Author GIT_AUTHOR_EMAIL=author@example.org GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=Author GIT_COMMITTER_EMAIL=author@example.org GIT_COMMITTER_DATE='1700000000 +0000'
mkdir "$HOME"

write_files() { # round
  awk -v round="$1" 'BEGIN {
    for (file = 0; file < 300; ++file) {
      name = sprintf("dir%d/file%d.txt", file % 17, file)
      for (row = 0; row < 10 + file % 90; ++row) {
        print (row % 7 == round % 7 ? round : 0), file * row % 1009, "some text that stays" > name
      }
      close(name)
    }
  }'
}

run_git() {
  mkdir "$work/$turn"
  cd "$work/$turn"
  run git init -q -b main .
  for dir in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do mkdir "dir$dir"; done
  for round in 1 2 3 4 5; do
    write_files "$round"
    run git add -A
    run git commit -q -m "round $round"
  done
  run git checkout -q -b side HEAD~2
  echo side >side.txt
  run git add side.txt
  run git commit -q -m side
  run git checkout -q main
  run git merge -q -m merge side
  run git gc -q --aggressive --prune=now
  run git fsck --full --strict --no-progress
  run git log --format='%H %T %s'
  run git ls-tree -r HEAD
  run git diff --stat HEAD~3 HEAD
  run git grep -c stays -- 'dir3/*'
  run git blame -s dir3/file3.txt
  run git count-objects -v | grep in-pack
  run git archive --format=tar HEAD | cksum
}

both git run_git
