// ranks.h: R comms over the engine of threads, or over files, and a function that each of R threads runs with its own.
#ifndef AMP_TESTS_RUNTIME_COMM_RANKS_H
#define AMP_TESTS_RUNTIME_COMM_RANKS_H

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/alloc.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/files/files_engine.h"
#include "tests/runtime/comm/thread_engine.h"

struct Ranks {
    explicit Ranks(World *world, bool ordered = false, double timeout = 20) : world(world) {
        options.struct_size = sizeof options;
        options.timeout = timeout;
        options.ordered = ordered;
    }

    World *world;
    std::string folder; // "": threads; else the ranks meet there
    amp_comm_options options = {};
    amp_lane_limits limits = amp_lane_default_limits;

    amp_status Open(int32_t rank, amp_comm **out, amp_error *err, const amp_allocator *allocator = nullptr) {
        amp_engine *engine = nullptr;
        if (folder.empty()) engine = world->Engine(rank, allocator);
        else {
            const amp_files_options files = {folder.c_str(), rank, world->ranks, 20};
            const amp_allocator a = amp_allocator_or_default(allocator);
            const amp_status status = amp_files_engine_open(&files, &a, &engine, err);
            if (status) return status;
        }
        return amp_comm_open_engine(engine, &options, &limits, out, err);
    }

    // Opens, runs, releases; an open that fails is a failure of the test.
    void Run(const std::function<void(amp_comm *)> &body) {
        std::vector<std::thread> threads;
        for (int32_t r = 0; r < world->ranks; r++)
            threads.emplace_back([this, r, &body] {
                amp_comm *comm = nullptr;
                amp_error err = {};
                ASSERT_EQ(Open(r, &comm, &err), AMP_OK) << err.message;
                body(comm);
                amp_comm_release(comm);
            });
        for (std::thread &t : threads) t.join();
    }
};

// One collective from start to end.
inline amp_status Do(amp_comm *comm, amp_collective_op op, amp_dtype dtype, void *data, size_t count, amp_error *err,
                     int32_t root = 0, const char *what = "bucket 0 (fc1.weight ..)") {
    uint64_t number = 0;
    amp_status status = comm->calls->start(comm, op, dtype, data, count, root, what, &number, err);
    return status ? status : comm->calls->wait(comm, number, err);
}

#endif
