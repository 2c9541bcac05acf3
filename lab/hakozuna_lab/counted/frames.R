# SPDX-License-Identifier: Apache-2.0
# A data frame read from text, grouped, split and fitted; and a list of small lists.
text <- paste(c("a,b,c", sprintf("%d,%d,%s", 1:3000, (1:3000) * 7919 %% 1009, letters[1 + (1:3000) %% 26])), collapse = "\n")
frame <- read.csv(text = text)
means <- aggregate(b ~ c, frame, mean)
sums <- sapply(split(frame, frame$c), function(part) sum(part$a))
small <- lapply(1:3000, function(i) list(i, as.character(i)))
print(sum(sums))
print(nrow(means))
print(length(coef(lm(b ~ a, frame))))
print(length(unlist(small)))
