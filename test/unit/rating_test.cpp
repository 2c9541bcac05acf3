// SPDX-License-Identifier: Apache-2.0
//
// Presets that play against each other: the cheaper one takes over, noise moves nothing, and games are rare.
#include "box/policy/rating.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hz_test {
namespace {

using hz::Rating;

struct Played {
  unsigned leader = 0, tried = 0, moves = 0;
};
// So many rounds in which each preset costs what `cost_of` says.
Played Play(Rating& rating, int rounds, auto cost_of) {
  Played played;
  unsigned in_force = rating.leader();
  for (int i = 0; i < rounds; ++i) {
    in_force = rating.round(cost_of(in_force));
    played.tried += in_force != rating.leader() ? 1 : 0;
  }
  played.leader = rating.leader();
  played.moves = rating.moves();
  return played;
}

TEST(Rating, TheCheapestTakesOver) {
  for (unsigned best = 0; best < Rating::kPlayers; ++best) {
    Rating rating;
    const Played played = Play(rating, 400, [best](unsigned i) { return i == best ? 100u : 200u; });
    EXPECT_EQ(best, played.leader);
    EXPECT_EQ(best == 0 ? 0u : 1u, played.moves);
    for (unsigned i = 0; i < Rating::kPlayers; ++i) EXPECT_GE(rating.points(best), rating.points(i));
  }
}

TEST(Rating, EqualsStayAndGamesBecomeRare) {
  Rating rating;
  Play(rating, 1000, [](unsigned) { return 200u; });
  const Played later = Play(rating, 1000, [](unsigned) { return 200u; });
  EXPECT_EQ(0u, later.moves);
  EXPECT_EQ(0u, later.leader);
  EXPECT_LE(later.tried, 4 * (Rating::kPlayers - 1)) << "a round in a hundred";
  EXPECT_GT(later.tried, 0u) << "the program may have changed";
}

TEST(Rating, NoiseMovesNothing) {
  std::mt19937 random(5);
  unsigned moves = 0;
  for (int run = 0; run < 100; ++run) {
    Rating rating;
    moves += Play(rating, 2000, [&random](unsigned) { return 195u + random() % 11; }).moves;
  }
  EXPECT_EQ(0u, moves);
}

TEST(Rating, WhoWasBetterAndIsNoLongerIsLeft) {
  Rating rating;
  EXPECT_EQ(2u, Play(rating, 400, [](unsigned i) { return i == 2 ? 100u : 200u; }).leader);
  EXPECT_EQ(1u, Play(rating, 4000, [](unsigned i) { return i == 1 ? 100u : 200u; }).leader);
}

TEST(Rating, WhatCostsLittleIsLeftAlone) {
  Rating rating;
  const Played played = Play(rating, 1000, [](unsigned i) { return i == 1 ? 0u : Rating::kLeastCost - 1; });
  EXPECT_EQ(0u, played.tried);
}

TEST(Rating, ATrialThatIsFarDearerIsLostBeforeItsRoundIsOver) {
  Rating rating;
  while (rating.round(200) == rating.leader()) EXPECT_FALSE(rating.is_lost(100000)) << "it is no trial";
  EXPECT_FALSE(rating.is_lost(300));
  EXPECT_TRUE(rating.is_lost(400));
}

TEST(Rating, AFixedOneStays) {
  Rating rating;
  rating.fix(3);
  const Played played = Play(rating, 2000, [](unsigned i) { return i == 3 ? 900u : 100u; });
  EXPECT_EQ(3u, played.leader);
  EXPECT_EQ(0u, played.tried);
}

TEST(Rating, TheSameCostsGiveTheSameChoices) {
  const auto replay = [] {
    Rating rating;
    std::mt19937 random(11);
    std::vector<unsigned> chosen;
    for (int i = 0; i < 5000; ++i) chosen.push_back(rating.round(64 + random() % 400));
    return chosen;
  };
  EXPECT_EQ(replay(), replay());
}

}  // namespace
}  // namespace hz_test
