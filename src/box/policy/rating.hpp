// SPDX-License-Identifier: Apache-2.0
//
// Which of some presets serves a program best, by what it measured: each round one is in force and costs so
// much; now and then another one is tried, and the two are rated as players are after a game. One that leads
// by kLead takes over. Called by a policy that learns, once a round. The same costs in the same order give
// the same choices. Source of the idea: A. Elo, The Rating of Chessplayers (1978).
#pragma once

namespace hz {

class Rating {
 public:
  static constexpr unsigned kPlayers = 4;
  static constexpr int kStart = 1500, kLead = 60;
  static constexpr int kStake = 32;           // points that a game between equals moves
  static constexpr unsigned kDraw = 16;       // costs that differ by less than such a part are even
  static constexpr unsigned kLeastCost = 64;  // below there is nothing to win
  static constexpr unsigned kFirstRest = 8, kMostRest = 256;  // rounds between two series of games

  // The round is over and cost so much, in parts that only have to compare; which preset is next.
  unsigned round(unsigned cost) {
    if (game_ == Game::kTrial) {
      tried_ = cost;
      game_ = Game::kAfter;
      return leader_;
    }
    // Of a program that grows or shrinks meanwhile, the rounds before and after stand for the one between.
    if (game_ == Game::kAfter) {
      game_ = Game::kNone;
      play((before_ + cost) / 2, tried_);
    }
    before_ = cost;
    if (rest_ != 0) return --rest_, leader_;
    if (cost < kLeastCost) return leader_;
    game_ = Game::kTrial;
    return challenger();
  }
  // In force for part of a round, and already so much dearer that the game is lost.
  bool is_lost(unsigned cost) const {
    return game_ == Game::kTrial && cost > before_ + before_ / 4 + kLeastCost;
  }

  unsigned leader() const { return leader_; }
  int points(unsigned player) const { return points_[player]; }
  unsigned moves() const { return moves_; }
  // That one, and no games.
  void fix(unsigned player) {
    leader_ = player;
    rest_ = ~0U;
  }

 private:
  unsigned challenger() const { return (leader_ + 1 + turn_) % kPlayers; }

  void play(unsigned cost, unsigned tried) {
    const unsigned other = challenger();
    const unsigned even = (cost > tried ? cost : tried) / kDraw;
    const int won = tried + even < cost ? kStake : cost + even < tried ? 0 : kStake / 2;  // by `other`
    // The expected part of the stake, in a straight line: a half for equals, all of it 400 points above.
    const int ahead = points_[other] - points_[leader_];
    const int expected = kStake / 2 + (ahead > 400 ? 400 : ahead < -400 ? -400 : ahead) * (kStake / 2) / 400;
    points_[other] += won - expected;
    points_[leader_] -= won - expected;
    if (points_[other] > points_[leader_] + kLead) {
      leader_ = other;
      ++moves_;
      turn_ = 0;
      pause_ = kFirstRest;
      rest_ = kFirstRest;
      return;
    }
    // A winner plays the leader again at once; otherwise the next one has its turn.
    if (won == kStake) return;
    turn_ = (turn_ + 1) % (kPlayers - 1);
    if (turn_ != 0) return;
    rest_ = pause_;
    pause_ = pause_ < kMostRest ? 2 * pause_ : kMostRest;
  }

  int points_[kPlayers] = {kStart, kStart, kStart, kStart};
  unsigned leader_ = 0, turn_ = 0, moves_ = 0;
  unsigned rest_ = kFirstRest, pause_ = kFirstRest;
  unsigned before_ = 0, tried_ = 0;  // costs
  enum class Game { kNone, kTrial, kAfter } game_ = Game::kNone;
};

}  // namespace hz
