#include "tests/e2e/ranks.h"

namespace e2e {

Network::Network(int32_t ranks) : size_(ranks) {
    for (int32_t r = 0; r < ranks; r++) ranks_.push_back(std::make_unique<Rank>(this, r));
}

void Network::Begin(int32_t rank, double bytes_a_second) {
    Rank &r = *ranks_[static_cast<size_t>(rank)];
    Meet(&rank, sizeof rank, nullptr);
    if (!rank) bandwidth_ = bytes_a_second, free_at_ = 0, transfers_.clear();
    Meet(&rank, sizeof rank, nullptr);
    r.elsewhere = ProcessorTime(), r.waited = r.exposed = 0, r.started = 0;
}

double Network::ProcessorTime() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

amp_status Network::Start(amp_comm *comm, amp_collective_op op, amp_dtype dtype, void *data, size_t count, int32_t root,
                          const char *what, uint64_t *number, amp_error *) {
    Rank *r = Of(comm);
    const double now = r->Clock();
    Aside aside{r};
    Network *n = r->network;
    std::lock_guard<std::mutex> hold(n->lock_);
    *number = r->next++;
    r->started++;
    if (n->messages_.size() <= *number) n->messages_.resize(*number + 1);
    Message &m = n->messages_[*number];
    if (m.data.empty()) m = {op, dtype, count, root};
    EXPECT_TRUE(m.op == op && m.dtype == dtype && m.count == count && m.root == root)
        << "ranks start different messages, number " << *number << ": " << what;
    m.data.resize(static_cast<size_t>(n->size_));
    m.data[static_cast<size_t>(comm->rank)] = data;
    m.begins = std::max(m.begins, now);
    if (std::count(m.data.begin(), m.data.end(), nullptr)) return AMP_OK;
    n->Move(m);
    m.done = true;
    const size_t bytes = count * amp_dtype_size(dtype);
    const double begins = std::max(m.begins, n->free_at_);
    n->free_at_ = begins + (n->bandwidth_ > 0 ? static_cast<double>(bytes) / n->bandwidth_ : 0);
    n->transfers_.push_back({begins, n->free_at_, bytes, what});
    n->arrived_.notify_all();
    return AMP_OK;
}

amp_status Network::Wait(amp_comm *comm, uint64_t number, amp_error *) {
    Rank *r = Of(comm);
    const double now = r->Clock();
    Aside aside{r};
    Network *n = r->network;
    std::unique_lock<std::mutex> hold(n->lock_);
    n->arrived_.wait(hold, [&] { return number < n->messages_.size() && n->messages_[number].done; });
    const uint64_t first = r->next - r->started; // since Begin
    if (number < first) return AMP_OK;
    const size_t at = number - first;
    const double until = n->transfers_[at].ends;
    for (size_t i = 0; i <= at; i++)
        r->exposed += std::max(0.0, n->transfers_[i].ends - std::max(now, n->transfers_[i].begins));
    r->waited += std::max(0.0, until - now);
    return AMP_OK;
}

amp_status Network::MeetOf(amp_comm *comm, const void *mine, size_t size, void *all, const char *, amp_error *) {
    Aside aside{Of(comm)};
    Of(comm)->network->Meet(mine, size, static_cast<char *>(all), comm->rank);
    return AMP_OK;
}

void Network::Meet(const void *mine, size_t size, char *all, int32_t rank) {
    std::unique_lock<std::mutex> hold(lock_);
    std::vector<char> &room = said_[met_ % 2];
    room.resize(size * static_cast<size_t>(size_));
    memcpy(room.data() + size * static_cast<size_t>(rank), mine, size);
    const uint64_t meeting = met_;
    if (++there_ == size_) there_ = 0, met_++, arrived_.notify_all();
    else arrived_.wait(hold, [&] { return met_ > meeting; });
    if (all) memcpy(all, room.data(), room.size());
}

void Network::Move(const Message &m) {
    const size_t bytes = m.count * amp_dtype_size(m.dtype), part = bytes / m.data.size();
    switch (m.op) {
    case AMP_COLLECTIVE_ALL_REDUCE:
    case AMP_COLLECTIVE_ALL_REDUCE_TREE:
    case AMP_COLLECTIVE_REDUCE_SCATTER:
    case AMP_COLLECTIVE_REDUCE_SCATTER_TREE:
        ASSERT_TRUE(m.dtype == AMP_DT_F32 || m.dtype == AMP_DT_F64) << m.dtype;
        if (m.dtype == AMP_DT_F64) Add<double>(m);
        else Add<float>(m);
        return;
    case AMP_COLLECTIVE_ALL_GATHER:
        for (size_t from = 0; from < m.data.size(); from++)
            for (void *to : m.data)
                if (to != m.data[from])
                    memcpy(static_cast<char *>(to) + from * part, static_cast<char *>(m.data[from]) + from * part,
                           part);
        return;
    case AMP_COLLECTIVE_BROADCAST:
        for (void *to : m.data)
            if (to != m.data[static_cast<size_t>(m.root)]) memcpy(to, m.data[static_cast<size_t>(m.root)], bytes);
        return;
    default: FAIL() << "no session starts op " << m.op;
    }
}

std::string read_tensors(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    uint64_t header = 0;
    in.read(reinterpret_cast<char *>(&header), sizeof header);
    in.ignore(static_cast<std::streamsize>(header));
    return {std::istreambuf_iterator<char>(in), {}};
}

Inspected::Inspected(const std::string &path, int64_t capacity, int32_t ranks) {
    amp_error err = {};
    amp_session_options options = {};
    options.struct_size = sizeof options;
    options.capacity.n = capacity;
    options.threads = 1;
    EXPECT_EQ(amp_model_load(path.c_str(), nullptr, &model_, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_model_get_tables(model_, "cpu", &tables, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_session_plan_rank(model_, &options, 0, ranks, &memory, &err), AMP_OK) << err.message;
    amp_rank_message m;
    total = memory.total;
    while (amp_model_message_at(model_, "cpu", ranks, static_cast<int32_t>(messages.size()), &m, &err) == AMP_OK) {
        messages.push_back(m);
        total += m.memory;
    }
    EXPECT_EQ(err.code, AMP_INVALID_ARGUMENT);
    all_moments = Moments(0, 1);
    for (int32_t rank = 0; rank < ranks; rank++) moments.push_back(Moments(rank, ranks));
}

uint64_t Inspected::Moments(int32_t rank, int32_t ranks) {
    amp_error err = {};
    amp_rank_state s;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < tables.state_count; i++) {
        EXPECT_EQ(amp_model_rank_state(model_, "cpu", i, rank, ranks, &s, &err), AMP_OK) << err.message;
        EXPECT_LE(s.held, s.bytes);
        if (tables.states[i].role == AMP_STATE_MOMENT) bytes += s.held;
    }
    return bytes;
}

void on_ranks(int32_t ranks, const std::function<void(int32_t rank)> &body) {
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < ranks; r++) threads.emplace_back(body, r);
    for (std::thread &t : threads) t.join();
}

} // namespace e2e
