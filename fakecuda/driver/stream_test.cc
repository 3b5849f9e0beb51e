// stream_test.cc: the order of work: what a host and a stream that do not wait can see.
#include "fakecuda/driver/stand_in.h"

namespace {

class Streams : public StandIn {};

TEST_F(Streams, AHostThatReadsTooEarlySeesOldBytes) {
    std::set<bool> seen = over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(4);
        uint32_t *h = pinned(1);
        *h = 1;
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.copy_out(h, p, 4, s));
        bool early = *h == 2;
        EXPECT_EQ(CU_SUCCESS, cu.stream_sync(s));
        EXPECT_EQ(2u, *h);
        return early;
    });
    EXPECT_EQ(1u, seen.count(false)); // nothing has run by then: only a later call makes the device go on
    int done = 0;
    over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(4);
        uint32_t *h = pinned(1);
        *h = 1;
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.copy_out(h, p, 4, s));
        for (int i = 0; i < 2; i++) cu.stream_query(s);
        done += *h == 2;
        return true;
    });
    EXPECT_GT(done, 0);
    EXPECT_LT(done, 32);
}

TEST_F(Streams, AlteringAPageLockedSourceEarlyShows) {
    std::set<bool> altered = over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(4);
        uint32_t *h = pinned(1);
        *h = 1;
        EXPECT_EQ(CU_SUCCESS, cu.copy_in(p, h, 4, s));
        cu.stream_query(s);
        *h = 2;
        EXPECT_EQ(CU_SUCCESS, cu.stream_sync(s));
        return read(p, 1, s)[0] == 2;
    });
    EXPECT_EQ(2u, altered.size());
}

TEST_F(Streams, PageableSourcesAreTakenAtOnce) {
    over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(4);
        uint32_t word = 1;
        EXPECT_EQ(CU_SUCCESS, cu.copy_in(p, &word, 4, s));
        word = 2;
        EXPECT_EQ(1u, read(p, 1, s)[0]);
        return true;
    });
    start();
    CuPointer p = alloc(4);
    uint32_t word = 1;
    OK(cu.copy_in(p, &word, 4, nullptr));
    EXPECT_EQ(0, report().total("host_synchronisations"));
    EXPECT_EQ(1u, read(p, 1, nullptr)[0]);
    EXPECT_EQ(1, report().total("host_synchronisations"));
}

TEST_F(Streams, TwoStreamsAreNotInOrderWithoutAnEvent) {
    std::set<bool> first = over_seeds([&] {
        CuStream a = stream(), b = stream();
        CuPointer p = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 1, a));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, b));
        EXPECT_EQ(CU_SUCCESS, cu.context_sync());
        return read(p, 1, a)[0] == 1;
    });
    EXPECT_EQ(2u, first.size());
}

TEST_F(Streams, AnEventOrdersTwoStreams) {
    over_seeds([&] {
        CuStream a = stream(), b = stream();
        CuEvent e = event();
        CuPointer p = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 1, a));
        EXPECT_EQ(CU_SUCCESS, cu.event_record(e, a));
        EXPECT_EQ(CU_SUCCESS, cu.stream_wait(b, e, 0));
        EXPECT_EQ(CU_SUCCESS, cu.event_record(e, b)); // a later record changes nothing about the wait
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, b));
        EXPECT_EQ(2u, read(p, 1, b)[0]);
        return true;
    });
}

TEST_F(Streams, WaitingRunsOnlyWhatIsWaitedFor) {
    std::set<bool> other = over_seeds([&] {
        CuStream a = stream(), b = stream();
        CuPointer p = alloc(4), q = alloc(4);
        uint32_t *h = pinned(1);
        *h = 0;
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 1, a));
        EXPECT_EQ(CU_SUCCESS, cu.copy_out(h, p, 4, a));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(q, 1, 1, b));
        EXPECT_EQ(CU_SUCCESS, cu.stream_sync(b));
        return *h == 1;
    });
    EXPECT_EQ(2u, other.size());
}

TEST_F(Streams, TheLegacyStreamIsInOrderWithBlockingOnes) {
    over_seeds([&] {
        CuStream blocking = stream(0);
        CuPointer p = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 1, blocking));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, nullptr));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p + 0, 3, 1, blocking));
        EXPECT_EQ(3u, read(p, 1, nullptr)[0]);
        return true;
    });
    std::set<bool> order = over_seeds([&] {
        CuStream apart = stream(CU_STREAM_NON_BLOCKING);
        CuPointer p = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 1, apart));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, nullptr));
        EXPECT_EQ(CU_SUCCESS, cu.context_sync());
        return read(p, 1, apart)[0] == 2;
    });
    EXPECT_EQ(2u, order.size());
}

TEST_F(Streams, WhoAsksOftenEnoughGetsThere) {
    over_seeds([&] {
        CuStream s = stream();
        CuEvent e = event();
        CuPointer p = alloc(4);
        for (uint32_t i = 0; i < 20; i++) EXPECT_EQ(CU_SUCCESS, cu.fill32(p, i, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.event_record(e, s));
        int asked = 0;
        while (cu.event_query(e) == CU_NOT_READY && asked < 1000) asked++;
        EXPECT_LT(asked, 1000);
        EXPECT_EQ(CU_SUCCESS, cu.stream_query(s));
        return asked > 0;
    });
    EXPECT_EQ(0, report().total("host_synchronisations"));
}

TEST_F(Streams, Events) {
    start();
    CuStream s = stream();
    CuEvent a = event(CU_EVENT_DEFAULT), b = event(CU_EVENT_DEFAULT), untimed = event(), never = event();
    OK(cu.event_query(never)); // an empty set of work
    OK(cu.event_sync(never));
    OK(cu.stream_wait(s, never, 0));
    float ms = -1;
    EXPECT_EQ(CU_INVALID_HANDLE, cu.event_elapsed(&ms, a, b)); // not recorded
    CuPointer p = alloc(1 << 20);
    OK(cu.event_record(a, s));
    OK(cu.fill8(p, 1, 1 << 20, s));
    OK(cu.event_record(b, s));
    OK(cu.event_record(untimed, s));
    OK(cu.event_sync(b));
    OK(cu.event_elapsed(&ms, a, b));
    EXPECT_GT(ms, 0);
    OK(cu.event_sync(untimed));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.event_elapsed(&ms, a, untimed));
    EXPECT_EQ(CU_INVALID_VALUE, cu.event_elapsed(nullptr, a, b));
    EXPECT_EQ(CU_INVALID_VALUE, cu.stream_wait(s, a, 4));
    CuEvent e;
    EXPECT_EQ(CU_INVALID_VALUE, cu.event_create(&e, 32));
    for (CuEvent each : {a, b, untimed, never}) OK(cu.event_destroy(each));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.event_record(a, s));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.event_destroy(a));
    EXPECT_TRUE(report().mentions("misuse", "is used after its end"));
    OK(cu.stream_destroy(s));
    OK(cu.mem_free(p));
    finish();
    EXPECT_TRUE(report().lines("leaks").empty());
}

TEST_F(Streams, ElapsedTimeIsNotReadyBeforeTheEnd) {
    int not_ready = 0;
    over_seeds([&] {
        CuStream s = stream();
        CuEvent a = event(CU_EVENT_DEFAULT), b = event(CU_EVENT_DEFAULT);
        EXPECT_EQ(CU_SUCCESS, cu.event_record(a, s));
        EXPECT_EQ(CU_SUCCESS, cu.event_record(b, s));
        float ms;
        not_ready += cu.event_elapsed(&ms, a, b) == CU_NOT_READY;
        return true;
    });
    EXPECT_GT(not_ready, 0);
}

TEST_F(Streams, AStreamThatIsDestroyedRunsOut) {
    over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 5, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.stream_destroy(s));
        EXPECT_EQ(CU_INVALID_HANDLE, cu.fill32(p, 6, 1, s));
        EXPECT_EQ(CU_INVALID_HANDLE, cu.stream_destroy(s));
        EXPECT_EQ(CU_SUCCESS, cu.context_sync());
        EXPECT_EQ(5u, read(p, 1, nullptr)[0]);
        return true;
    });
}

TEST_F(Streams, MisusedHandles) {
    start();
    CuStream s = stream();
    CuEvent e = event();
    EXPECT_EQ(CU_INVALID_HANDLE, cu.stream_sync(reinterpret_cast<CuStream>(e)));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.event_sync(reinterpret_cast<CuEvent>(s)));
    int local;
    EXPECT_EQ(CU_INVALID_HANDLE, cu.stream_sync(reinterpret_cast<CuStream>(&local)));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.event_record(nullptr, s));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.stream_destroy(nullptr));
    EXPECT_EQ(CU_NOT_SUPPORTED, cu.stream_sync(reinterpret_cast<CuStream>(2))); // per thread
    EXPECT_EQ(CU_INVALID_VALUE, cu.stream_create(&s, 2));
    EXPECT_EQ(CU_INVALID_VALUE, cu.stream_create(nullptr, 0));
    EXPECT_EQ(3u, report().lines("misuse").size());
}

TEST_F(Streams, FreesWait) {
    over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(4), q = alloc(4);
        uint32_t *h = pinned(1);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 5, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.copy(q, p, 4, s));
        EXPECT_EQ(CU_SUCCESS, cu.mem_free(p));
        EXPECT_EQ(CU_SUCCESS, cu.copy_out(h, q, 4, s));
        EXPECT_EQ(CU_SUCCESS, cu.host_free(h));
        EXPECT_EQ(CU_SUCCESS, cu.context_sync());
        return true;
    });
}

} // namespace
