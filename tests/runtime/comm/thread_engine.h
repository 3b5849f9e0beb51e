// thread_engine.h: an engine whose ranks are threads of one process, with faults that a test plants.
#ifndef AMP_TESTS_RUNTIME_COMM_THREAD_ENGINE_H
#define AMP_TESTS_RUNTIME_COMM_THREAD_ENGINE_H

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/engine.h"

// Where the ranks meet.  The last one to start a message moves the data of all.
class World {
  public:
    explicit World(int32_t ranks) : ranks(ranks) {}

    // For |rank| alone; NULL allocator: malloc.
    amp_engine *Engine(int32_t rank, const amp_allocator *allocator = nullptr);

    const int32_t ranks;
    // Set before the engines are made:
    uint32_t sums =
        1u << AMP_DT_F32 | 1u << AMP_DT_F64; // that the engine adds by itself, from the last rank to the first
    bool own_thread = true;
    int32_t dead_rank = -1; // neither starts a message nor takes a letter from its message |dead_from| on
    int64_t dead_from = 0;
    int32_t silent_rank = -1;  // starts no message from |silent_from| on, and does not fail
    int32_t failing_rank = -1; // its start fails from |failing_from| on
    int64_t silent_from = 0, failing_from = 0;
    int32_t hanging_rank = -1; // its test does not return for |hangs|, once, from |hanging_from| on
    int64_t hanging_from = 0;
    std::chrono::milliseconds hangs{0};
    int32_t delayed_rank = -1; // each of its messages starts so much later
    std::chrono::milliseconds delay{0};
    amp_status connect_status = AMP_OK;
    std::chrono::milliseconds connect_takes{0}, disconnect_takes{0};

    // What has happened.
    struct Seen {
        int started = 0, most_at_once = 0, disconnected = 0, abandoned = 0, closed = 0;
        size_t largest = 0;                  // bytes of a message
        std::vector<std::string> mismatches; // ranks that started different messages
    };
    Seen seen() {
        std::lock_guard<std::mutex> hold(lock_);
        return seen_;
    }

  private:
    friend struct ThreadEngine;
    struct Meeting { // of one message
        std::vector<amp_message> of;
        std::vector<bool> there;
        int arrived = 0;
        bool fits = true; // all have started the same, and none has left before all had
    };
    void Move(Meeting *m);

    std::mutex lock_;
    std::map<std::pair<int32_t, int64_t>, Meeting> meetings_;                            // by lane and number in it
    std::map<int32_t, std::deque<std::array<unsigned char, AMP_LETTER_BYTES>>> letters_; // by who gets them
    Seen seen_;
};

#endif
