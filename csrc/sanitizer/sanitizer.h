// SPDX-License-Identifier: BSD-3-Clause
// The stream sanitizer: what is ordered before what, and which accesses are not. It learns
// each call in the order in which the host makes them, so what it finds does not depend on the
// schedule.
//
// Orderings: the work of a stream is ordered as it was queued; it begins after all that the host
// did before it was queued; a wait for an event orders what is behind the wait after what was
// before the record; a synchronisation, and a query that answers "done", order what the host does
// then. The host is one lane: its threads are taken to be ordered as their calls arrive.
//
// Everything is thread-safe. No function calls the driver or takes the GIL, except takeReports().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "hal/hal.h"
#include "sanitizer/clock.h"
#include "sanitizer/report.h"
#include "sanitizer/shadow.h"
#include "sanitizer/work.h"

namespace puone::sanitizer {

// A call that queues work.
struct Piece {
  std::string what;
  SitePtr site;
  Operands operands;
  bool copies = false; // operands 0 and 1 are the destination and the source
};

// A place in the order.
struct Moment {
  Lane lane;
  uint64_t time;
  Clock clock;
};

class Sanitizer {
 public:
  // ---- work ----
  void queued(puone_stream stream, Piece piece);
  // A host function is queued. Gives the moment at which it will run.
  Moment hostFunctionQueued(puone_stream stream);
  // An access by the host: now, or at the moment of the host function that makes it.
  void hostAccess(const Piece& piece, const Moment* moment);

  // ---- order ----
  void recorded(puone_event event, puone_stream stream);
  void waits(puone_stream stream, puone_event event);
  void hostWaitsForStream(puone_stream stream);
  void hostWaitsForEvent(puone_event event);
  // -1: all devices.
  void hostWaitsForDevice(int32_t device);
  void destroyed(puone_event event);
  void destroyed(puone_stream stream);
  void neverRecorded(const std::string& waiting, SitePtr site);

  // ---- memory ----
  void allocated(Range bytes, SitePtr site);
  void pinned(Range bytes);
  void released(Range bytes);
  bool isPinned(Range bytes) const;
  bool hasPinned() const noexcept {
    return has_pinned_.load(std::memory_order_relaxed);
  }

  // ---- graphs ----
  void captureBegins(puone_stream stream);
  void captureEnds(puone_stream stream, puone_graph graph); // NULL: it failed
  // What happened with a launch: it was followed, or the graph is not known: for the first time.
  enum class Launch {
    Followed,
    FirstUnknown,
    Unknown
  };
  Launch launched(puone_graph graph, puone_stream stream);
  void destroyed(puone_graph graph);

  // Forgets everything but the reports.
  void reset();

  // What was found since the last call, at most kMaxFindings. Looks stacks up, which takes the GIL.
  std::vector<Report> takeReports();
  bool hasFindings() const noexcept {
    return has_findings_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kMaxFindings = 1000;

  struct StreamLane {
    puone_stream stream = nullptr;
    std::string name;
    int32_t device = -1;
    Clock clock;
  };
  struct Allocation {
    uintptr_t end;
    uint64_t number;
    SitePtr site;
  };
  struct Finding {
    Kind kind;
    std::vector<Access> accesses;
    std::vector<std::string> streams;
    Range bytes{};
    Range block{};
    SitePtr allocation;
    std::string waiting;
    SitePtr site;
  };

  // A capture and the graph that it becomes.
  struct Record {
    size_t number;
  };
  struct Wait {
    size_t number;
  };
  struct Step {
    size_t lane;
    std::variant<Piece, Record, Wait> action;
  };
  struct Graph {
    std::vector<puone_stream> streams; // captured ones; the first is where it began
    std::vector<Step> steps;
    size_t records = 0;
    std::vector<Lane> lanes; // of its launches; the first is that of the stream
    Clock last;              // the end of the last launch
  };
  struct CapturedRecord {
    std::shared_ptr<Graph> graph;
    size_t number;
  };

  Lane laneOf(puone_stream stream);
  Clock& clockOf(Lane lane) {
    return lanes_[lane].clock;
  }
  Lane laneInGraph(const StreamLane& captured, const Clock& start);
  Graph* capturing(puone_stream stream);
  static size_t laneIn(Graph& graph, puone_stream stream);
  Moment next(Lane lane);
  void perform(const Moment& moment, const Piece& piece);
  void keep(const Findings& found);
  uint64_t allocationAt(uintptr_t address) const;
  void add(Finding finding);
  Report report(const Finding& finding) const;

  mutable std::mutex mutex_;
  std::vector<StreamLane> lanes_{StreamLane{nullptr, "the host", -1, {}}};
  std::unordered_map<puone_stream, Lane> lane_of_;
  std::unordered_map<puone_event, Clock> events_;
  Shadow shadow_;
  std::map<uintptr_t, Allocation> allocations_;
  uint64_t allocation_count_ = 0;
  std::map<uintptr_t, uintptr_t> pinned_; // begin -> end
  std::atomic<bool> has_pinned_{false};
  std::unordered_map<puone_stream, std::shared_ptr<Graph>> captures_;
  std::unordered_map<puone_event, CapturedRecord> captured_events_;
  std::unordered_map<puone_graph, std::shared_ptr<Graph>> graphs_;
  std::unordered_set<puone_graph> unknown_graphs_; // that were launched
  std::vector<Lane> idle_lanes_;                   // of graphs that are gone
  std::vector<Finding> findings_;
  std::atomic<bool> has_findings_{false};
};

// The one of the process.
Sanitizer& sanitizer();

} // namespace puone::sanitizer
