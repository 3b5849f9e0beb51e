// thread_engine.cc: see thread_engine.h.
#include "tests/runtime/comm/thread_engine.h"

#include <cstring>
#include <thread>

#include "base/alloc.h"
#include "base/error.h"

namespace {

template <typename T> void AddFromTheLast(const std::vector<amp_message> &of, size_t begin, size_t end, void *out) {
    for (size_t i = begin; i < end; i++) {
        T sum = 0;
        for (size_t r = of.size(); r-- > 0;) sum += static_cast<T *>(of[r].data)[i];
        static_cast<T *>(out)[i - begin] = sum;
    }
}

void Add(const std::vector<amp_message> &of, size_t begin, size_t end, void *out) {
    if (of[0].dtype == AMP_DT_F64) AddFromTheLast<double>(of, begin, end, out);
    else AddFromTheLast<float>(of, begin, end, out);
}

} // namespace

struct ThreadEngine {
    amp_engine head;
    World *world;
    int32_t rank;
    int64_t started[AMP_LANES] = {}; // messages of the lane
    int64_t messages = 0;            // of all lanes
    bool busy[AMP_LANES] = {};
    bool hung = false;
    std::chrono::steady_clock::time_point starts_at[AMP_LANES];
    bool waits[AMP_LANES] = {}; // for its delay
    amp_message pending[AMP_LANES];

    static ThreadEngine *Of(amp_engine *e) { return reinterpret_cast<ThreadEngine *>(e); }

    static amp_status Connect(amp_engine *engine, amp_error *err) {
        World *w = Of(engine)->world;
        std::this_thread::sleep_for(w->connect_takes);
        if (w->connect_status) return amp_fail(err, w->connect_status, "the ranks cannot be joined");
        engine->rank = Of(engine)->rank;
        engine->size = w->ranks;
        return AMP_OK;
    }

    void Arrive(int32_t lane) {
        World::Meeting &m = world->meetings_[{lane, started[lane]}];
        m.of.resize(static_cast<size_t>(world->ranks));
        m.there.resize(m.of.size());
        m.of[static_cast<size_t>(rank)] = pending[lane];
        m.there[static_cast<size_t>(rank)] = true;
        if (++m.arrived == world->ranks && m.fits) world->Move(&m);
        waits[lane] = false;
    }

    static amp_status Start(amp_engine *engine, int32_t lane, const amp_message *message, amp_error *err) {
        ThreadEngine *e = Of(engine);
        World *w = e->world;
        std::lock_guard<std::mutex> hold(w->lock_);
        const int64_t number = e->messages++;
        if (e->rank == w->failing_rank && number >= w->failing_from)
            return amp_fail(err, AMP_IO, "Engine_start: the network is on fire");
        e->busy[lane] = true;
        w->seen_.started++;
        w->seen_.largest = std::max(w->seen_.largest, message->count * amp_dtype_size(message->dtype));
        int at_once = 0;
        for (bool b : e->busy) at_once += b;
        w->seen_.most_at_once = std::max(w->seen_.most_at_once, at_once);
        e->started[lane]++;
        e->pending[lane] = *message;
        e->waits[lane] = true;
        e->starts_at[lane] = std::chrono::steady_clock::now();
        if (e->rank == w->delayed_rank) e->starts_at[lane] += w->delay;
        if (e->dead()) e->starts_at[lane] += std::chrono::hours(1);
        if (e->rank == w->silent_rank && number >= w->silent_from) e->starts_at[lane] += std::chrono::hours(1);
        if (std::chrono::steady_clock::now() >= e->starts_at[lane]) e->Arrive(lane);
        return AMP_OK;
    }

    static amp_status Test(amp_engine *engine, int32_t lane, bool *done, amp_error *) {
        ThreadEngine *e = Of(engine);
        World *w = e->world;
        std::unique_lock<std::mutex> hold(w->lock_);
        if (e->rank == w->hanging_rank && e->messages > w->hanging_from && !e->hung) {
            e->hung = true;
            hold.unlock();
            std::this_thread::sleep_for(w->hangs);
            hold.lock();
        }
        if (e->waits[lane] && std::chrono::steady_clock::now() >= e->starts_at[lane]) e->Arrive(lane);
        auto found = w->meetings_.find({lane, e->started[lane]});
        *done =
            !e->waits[lane] && found != w->meetings_.end() && found->second.arrived == w->ranks && found->second.fits;
        if (*done) e->busy[lane] = false;
        return AMP_OK;
    }

    bool dead() const { return rank == world->dead_rank && messages > world->dead_from; }

    static amp_status Send(amp_engine *engine, int32_t to, amp_letter *letter, amp_error *) {
        ThreadEngine *e = Of(engine);
        std::lock_guard<std::mutex> hold(e->world->lock_);
        letter->leaves = true;
        if (e->dead()) return AMP_OK;
        auto &box = e->world->letters_[to];
        box.emplace_back();
        memcpy(box.back().data(), letter->bytes, AMP_LETTER_BYTES);
        return AMP_OK;
    }
    static amp_status Sent(amp_engine *engine, amp_letter *letter, amp_error *) {
        std::lock_guard<std::mutex> hold(Of(engine)->world->lock_);
        letter->leaves = false;
        return AMP_OK;
    }
    static amp_status Receive(amp_engine *engine, unsigned char *bytes, bool *came, amp_error *) {
        ThreadEngine *e = Of(engine);
        std::lock_guard<std::mutex> hold(e->world->lock_);
        auto &box = e->world->letters_[e->rank];
        *came = !e->dead() && !box.empty();
        if (!*came) return AMP_OK;
        memcpy(bytes, box.front().data(), AMP_LETTER_BYTES);
        box.pop_front();
        return AMP_OK;
    }

    static void Disconnect(amp_engine *engine) {
        std::this_thread::sleep_for(Of(engine)->world->disconnect_takes);
        std::lock_guard<std::mutex> hold(Of(engine)->world->lock_);
        Of(engine)->world->seen_.disconnected++;
    }
    // What the rank has started never arrives: its memory is its owner's again.
    static void Abandon(amp_engine *engine) {
        World *w = Of(engine)->world;
        std::lock_guard<std::mutex> hold(w->lock_);
        w->seen_.abandoned++;
        for (auto &at : w->meetings_) {
            World::Meeting &m = at.second;
            if (m.arrived < w->ranks && m.there[static_cast<size_t>(engine->rank)]) m.fits = false;
        }
    }
    static void Close(amp_engine *engine) {
        {
            std::lock_guard<std::mutex> hold(Of(engine)->world->lock_);
            Of(engine)->world->seen_.closed++;
        }
        delete reinterpret_cast<amp_engine_type *>(const_cast<amp_engine_type *>(engine->type));
        delete Of(engine);
    }
};

void World::Move(Meeting *meeting) {
    const Meeting &m = *meeting;
    const amp_message &first = m.of[0];
    const size_t size = amp_dtype_size(first.dtype), n = static_cast<size_t>(ranks), part = first.count / n;
    for (const amp_message &other : m.of)
        if (other.op != first.op || other.dtype != first.dtype || other.count != first.count ||
            other.rank != first.rank) {
            seen_.mismatches.push_back("op " + std::to_string(other.op) + " of " + std::to_string(other.count) +
                                       ", not op " + std::to_string(first.op) + " of " + std::to_string(first.count));
            meeting->fits = false;
            return;
        }
    auto at = [&](void *p, size_t element) { return static_cast<char *>(p) + element * size; };
    std::vector<char> sum(first.count * size);
    switch (first.op) {
    case AMP_SUM_ALL:
        Add(m.of, 0, first.count, sum.data());
        for (const amp_message &to : m.of) memcpy(to.data, sum.data(), sum.size());
        break;
    case AMP_SUM_SHARE:
        Add(m.of, 0, first.count, sum.data());
        for (size_t r = 0; r < n; r++) {
            memset(m.of[r].data, 0xee, sum.size());
            memcpy(at(m.of[r].data, r * part), sum.data() + r * part * size, part * size);
        }
        break;
    case AMP_GATHER:
        for (size_t from = 0; from < n; from++)
            for (size_t to = 0; to < n; to++)
                if (to != from) memcpy(at(m.of[to].data, from * part), at(m.of[from].data, from * part), part * size);
        break;
    case AMP_FROM_RANK:
        for (size_t to = 0; to < n; to++)
            if (to != static_cast<size_t>(first.rank))
                memcpy(m.of[to].data, m.of[static_cast<size_t>(first.rank)].data, first.count * size);
        break;
    case AMP_EXCHANGE:
        for (size_t from = 0; from < n; from++)
            for (size_t to = 0; to < n; to++)
                memcpy(at(m.of[to].to, from * part), at(m.of[from].data, to * part), part * size);
        break;
    }
}

amp_engine *World::Engine(int32_t rank, const amp_allocator *allocator) {
    auto *e = new ThreadEngine;
    e->world = this;
    e->rank = rank;
    e->head = {};
    auto *type = new amp_engine_type{};
    type->name = "threads";
    type->sums = sums;
    type->connect = ThreadEngine::Connect;
    type->start = ThreadEngine::Start;
    type->test = ThreadEngine::Test;
    type->send = ThreadEngine::Send;
    type->sent = ThreadEngine::Sent;
    type->receive = ThreadEngine::Receive;
    type->disconnect = ThreadEngine::Disconnect;
    type->abandon = ThreadEngine::Abandon;
    type->close = ThreadEngine::Close;
    e->head.type = type;
    e->head.allocator = amp_allocator_or_default(allocator);
    e->head.own_thread = own_thread;
    e->head.library = "the engine of threads";
    return &e->head;
}
