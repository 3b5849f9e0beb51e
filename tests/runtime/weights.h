// weights.h: models and files for tests of published weights.
#ifndef AMP_TESTS_RUNTIME_WEIGHTS_H
#define AMP_TESTS_RUNTIME_WEIGHTS_H

#include <sys/stat.h>

#include <map>

#include "tests/runtime/files.h"
#include "tests/runtime/tiny.h"

using Dims = std::vector<int64_t>;
using List = std::vector<const char *>;

inline size_t Count(const Dims &dims) {
    size_t count = 1;
    for (int64_t d : dims) count *= (size_t)d;
    return count;
}

// ---- a model with the parameters that a test names ------------------------------------------------------------------

struct Named {
    std::string name;
    Dims dims;
    bool counter = false; // i64 buffer
};

// The tiny model's own are fc.weight, fc.bias and fc.batches; the others are used by no program of it.
struct Grown {
    explicit Grown(const std::vector<Named> &more, const amp_allocator *allocator = nullptr)
        : names(more), desc(*amp_model_query()) {
        const auto *from = (const amp_model_state *)desc.states.data;
        states.assign(from, from + desc.states.count);
        for (const Named &n : names) {
            amp_model_state s = {};
            s.name = n.name.c_str(), s.role = n.counter ? AMP_STATE_BUFFER : AMP_STATE_PARAM, s.of = AMP_MODEL_NONE;
            s.dtype = s.storage = n.counter ? AMP_DT_I64 : AMP_DT_F32, s.layout = AMP_LAYOUT_ROWS;
            s.rank = (uint32_t)n.dims.size(), s.counter_block = AMP_MODEL_NONE;
            for (size_t i = 0; i < n.dims.size(); i++) s.dims[i] = n.dims[i];
            states.push_back(s);
        }
        desc.states.data = states.data(), desc.states.count = (uint32_t)states.size();
        amp_params_options zeros = {sizeof zeros, 0, 1};
        EXPECT_EQ(amp_model_from_desc(&desc, "grown", allocator, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, &zeros, &params, &err), AMP_OK) << err.message;
    }
    ~Grown() { amp_params_release(params), amp_model_release(model); }
    Grown(const Grown &) = delete;
    Grown &operator=(const Grown &) = delete;

    std::vector<float> Get(const std::string &name, size_t count) const {
        std::vector<float> out(count);
        amp_error e = {};
        EXPECT_EQ(amp_params_get(params, name.c_str(), out.data(), count, &e), AMP_OK) << e.message;
        return out;
    }

    std::vector<Named> names;
    amp_model_desc desc;
    std::vector<amp_model_state> states;
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_error err = {};
};

// ---- files ----------------------------------------------------------------------------------------------------------

struct Tensor {
    std::string name, dtype;
    Dims dims;
    std::string bytes;
};

template <class T> std::string Bytes(const std::vector<T> &values) {
    return std::string((const char *)values.data(), values.size() * sizeof(T));
}

// 0, 1, 2, ... and |first|: no two tensors alike.
inline std::vector<float> Ramp(size_t count, float first) {
    std::vector<float> out(count);
    for (size_t i = 0; i < count; i++) out[i] = first + (float)i;
    return out;
}

inline Tensor F32(const std::string &name, const Dims &dims, float first) {
    return {name, "F32", dims, Bytes(Ramp(Count(dims), first))};
}

inline std::string Text(const std::vector<Tensor> &tensors, const std::string &metadata = "") {
    std::string header = "{" + metadata, data, length(8, '\0');
    for (const Tensor &t : tensors) {
        std::string dims;
        for (int64_t d : t.dims) dims += (dims.empty() ? "" : ",") + std::to_string(d);
        header += (header.size() > 1 ? ",\"" : "\"") + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":[" + dims +
                  "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
                  std::to_string(data.size() + t.bytes.size()) + "]}";
        data += t.bytes;
    }
    header += "}";
    for (int i = 0; i < 8; i++) length[(size_t)i] = (char)(header.size() >> 8 * i);
    return length + header + data;
}

inline std::string WriteTensors(const std::string &name, const std::vector<Tensor> &tensors,
                                const std::string &metadata = "") {
    return WriteTemp(name, Text(tensors, metadata));
}

// The tiny model's own.
inline std::vector<Tensor> With(std::vector<Tensor> more) {
    more.push_back(F32("fc.weight", {TINY_CLASSES, TINY_FEATURES}, 0.5f));
    more.push_back(F32("fc.bias", {TINY_CLASSES}, 1000.5f));
    more.push_back({"fc.batches", "I64", {}, std::string(8, '\0')});
    return more;
}

// ---- loading --------------------------------------------------------------------------------------------------------

struct Rules {
    Rules(List ignore = {}, List rename = {}, List transpose = {}, List fresh = {})
        : ignore(ignore), rename(rename), transpose(transpose), fresh(fresh) {}
    List ignore, rename, transpose, fresh;
    std::map<std::string, std::string> why;
    std::map<std::string, int> kind;

    static void Note(void *user, const char *name, amp_weights_difference kind, const char *why) {
        auto *self = static_cast<Rules *>(user);
        self->why[name] = why, self->kind[name] = kind;
    }
    amp_weights_options get() {
        for (List *l : {&ignore, &rename, &transpose, &fresh})
            if (l->empty() || l->back()) l->push_back(nullptr);
        amp_weights_options o = {};
        o.struct_size = sizeof o, o.user = this, o.difference = Note;
        o.ignore = ignore.data(), o.rename = rename.data(), o.transpose = transpose.data(), o.fresh = fresh.data();
        return o;
    }
};

struct Loaded {
    amp_status status;
    std::string message;
    amp_weights_report report;
};

inline Loaded Load(const Grown &g, const std::string &path, Rules &rules) {
    amp_error err = {};
    Loaded out = {};
    amp_weights_options o = rules.get();
    out.status = amp_params_load(g.params, path.c_str(), &o, &out.report, &err);
    out.message = out.status ? err.message : "";
    return out;
}

inline Loaded Load(const Grown &g, const std::string &path, Rules &&rules = {}) { return Load(g, path, rules); }

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// A little GPT-2: names and layouts of Hugging Face's.
inline std::vector<Named> Gpt() {
    std::vector<Named> out = {{"wte.weight", {12, 4}}, {"ln_f.weight", {4}}};
    for (int i = 0; i < 3; i++) {
        std::string h = "h." + std::to_string(i) + ".";
        out.push_back({h + "ln_1.weight", {4}});
        out.push_back({h + "attn.c_attn.weight", {12, 4}});
        out.push_back({h + "attn.c_attn.bias", {12}});
        out.push_back({h + "attn.c_proj.weight", {4, 4}});
    }
    return out;
}

inline std::vector<Tensor> GptFile(const std::string &prefix, bool turned = false) {
    std::vector<Tensor> out;
    float first = 0;
    for (const Named &n : Gpt()) {
        Dims dims = n.dims;
        if (turned && n.name.find("attn.c_attn.weight") != std::string::npos) std::swap(dims[0], dims[1]);
        out.push_back(F32(prefix + n.name, dims, first += 100));
    }
    return With(out);
}

// ---- shards ---------------------------------------------------------------------------------------------------------

inline std::string Index(const std::vector<std::pair<std::string, std::string>> &map) {
    std::string out;
    for (const auto &m : map) out += (out.empty() ? "\"" : ",\"") + m.first + "\":\"" + m.second + "\"";
    return "{\"metadata\":{\"total_size\":123},\"weight_map\":{" + out + "}}";
}

struct Shards {
    std::vector<std::pair<std::string, std::string>> map;
    Shards() {
        std::vector<Tensor> all = GptFile("transformer."), parts[2];
        mkdir(TempPath("below").c_str(), 0700);
        for (size_t i = 0; i < all.size(); i++) {
            parts[i % 2].push_back(all[i]);
            map.push_back({all[i].name, i % 2 ? "below/s2.safetensors" : "s1.safetensors"});
        }
        WriteTensors("s1.safetensors", parts[0]), WriteTensors("below/s2.safetensors", parts[1]);
    }
};

#endif
