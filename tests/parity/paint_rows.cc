// paint_rows.cc: reading rows, with every reference in them resolved.
#include "tests/parity/paint_rows.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/file.h"
#include "base/json.h"

namespace paint_vectors {
namespace {

const char kFormat[] = "; tests/parity/oracle/README.md says what a row is";

struct Place {
    std::string path;
    int line;
};

[[noreturn]] void Fail(const Place &place, const std::string &what) {
    throw BadFile(place.path + ":" + std::to_string(place.line) + ": " + what);
}

std::string Quoted(const std::string &text) { return "\"" + text + "\""; }

// ---- fields of a row -----------------------------------------------------------------------------------------------

// A row, where it is, and what it says otherwise of BF16, which takes the place of its fields; or nullptr.
struct Row {
    const Place &place;
    const amp_json *json, *otherwise;
};

const amp_json *Field(const Row &row, const char *key) {
    const amp_json *value = row.otherwise ? amp_json_get(row.otherwise, key) : nullptr;
    return value ? value : amp_json_get(row.json, key);
}

[[noreturn]] void FailField(const Row &row, const char *key, const std::string &what) {
    Fail(row.place, "field " + Quoted(key) + " " + what + kFormat);
}

void Expect(const Row &row, const char *key, const amp_json *value, amp_json_kind kind) {
    if (value->kind == kind) return;
    FailField(row, key,
              std::string("holds a value of kind ") + amp_json_kind_name(value->kind) + " where one of kind " +
                  amp_json_kind_name(kind) + " belongs");
}

const amp_json *Required(const Row &row, const char *key, amp_json_kind kind) {
    const amp_json *value = Field(row, key);
    if (!value) FailField(row, key, "is missing");
    Expect(row, key, value, kind);
    return value;
}

// nullptr where the row has none, or null.
const amp_json *Optional(const Row &row, const char *key, amp_json_kind kind) {
    const amp_json *value = Field(row, key);
    if (!value || value->kind == AMP_JSON_NULL) return nullptr;
    Expect(row, key, value, kind);
    return value;
}

std::string Text(const amp_json *value) { return std::string(value->string.data, value->string.len); }

std::string Name(const Row &row, const char *key) {
    std::string name = Text(Required(row, key, AMP_JSON_STRING));
    if (name.empty()) FailField(row, key, "is empty");
    return name;
}

std::vector<std::string> Names(const Row &row, const char *key) {
    std::vector<std::string> names;
    const amp_json *array = Required(row, key, AMP_JSON_ARRAY);
    for (size_t i = 0; i < array->array.count; i++) {
        Expect(row, key, &array->array.items[i], AMP_JSON_STRING);
        names.push_back(Text(&array->array.items[i]));
        if (names.back().empty()) FailField(row, key, "holds an empty name");
    }
    return names;
}

// Pairs of an object of strings, in the order of the text.
std::vector<std::pair<std::string, std::string>> Pairs(const Row &row, const char *key, const amp_json *object) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (size_t i = 0; object && i < object->object.count; i++) {
        const amp_json_member &member = object->object.members[i];
        Expect(row, key, &member.value, AMP_JSON_STRING);
        pairs.emplace_back(std::string(member.key.data, member.key.len), Text(&member.value));
    }
    return pairs;
}

// Those keys of an object of booleans that are true.
std::set<std::string> TrueKeys(const Row &row, const char *key) {
    std::set<std::string> keys;
    const amp_json *object = Optional(row, key, AMP_JSON_OBJECT);
    for (size_t i = 0; object && i < object->object.count; i++) {
        const amp_json_member &member = object->object.members[i];
        Expect(row, key, &member.value, AMP_JSON_BOOL);
        if (member.value.boolean) keys.insert(std::string(member.key.data, member.key.len));
    }
    return keys;
}

PaintList ListOf(const Row &row) {
    static const std::map<std::string, PaintList> lists = {{"allow", PAINT_LIST_ALLOW},
                                                           {"infer", PAINT_LIST_INFER},
                                                           {"deny", PAINT_LIST_DENY},
                                                           {"clear", PAINT_LIST_CLEAR}};
    const amp_json *value = Optional(row, "list", AMP_JSON_STRING);
    if (!value) return PAINT_LIST_NONE;
    auto found = lists.find(Text(value));
    if (found == lists.end())
        FailField(row, "list", "is " + Quoted(Text(value)) + "; the lists are allow, infer, deny and clear");
    return found->second;
}

// ---- rows ----------------------------------------------------------------------------------------------------------

// The type of a port's attribute; |known| are those that the row states.
std::string PortType(const Row &row, const char *ports, const std::string &key,
                     const std::map<std::string, std::string> &known) {
    if (key[0] == '=') return key.substr(1);
    auto found = known.find(key);
    if (found == known.end()) FailField(row, ports, "names " + Quoted(key) + ", which is not in \"attrs\"");
    return found->second;
}

void ReadTypes(const Row &row, Node *node) {
    auto mentioned = Pairs(row, "attrs", Required(row, "attrs", AMP_JSON_OBJECT));
    const std::map<std::string, std::string> known(mentioned.begin(), mentioned.end());
    std::vector<std::pair<std::string, std::string>> of_ports;
    for (const std::string &key : node->in_attr) of_ports.emplace_back(key, PortType(row, "in_attr", key, known));
    for (const std::string &key : node->out_attr) of_ports.emplace_back(key, PortType(row, "out_attr", key, known));
    mentioned.insert(mentioned.begin(), of_ports.begin(), of_ports.end());
    std::set<std::string> seen;
    for (const auto &type : mentioned)
        if (seen.insert(type.first).second) node->types.push_back(type);
}

Input ReadInput(const Row &row, const std::string &source) {
    Input input;
    input.source = source;
    const size_t colon = source.rfind(':');
    const std::string port = colon == std::string::npos ? "" : source.substr(colon + 1);
    if (port.empty() || port.size() > 6 || port.find_first_not_of("0123456789") != std::string::npos)
        FailField(row, "inputs", "holds " + Quoted(source) + ", which is no NODE:PORT");
    input.port = std::stoi(port);
    return input;
}

Node ReadNode(const Row &row) {
    Node node;
    node.line = row.place.line;
    node.name = Name(row, "node");
    node.op = Name(row, "op");
    node.in_attr = Names(row, "in_attr");
    node.out_attr = Names(row, "out_attr");
    ReadTypes(row, &node);
    for (const std::string &source : Names(row, "inputs")) node.inputs.push_back(ReadInput(row, source));
    if (node.inputs.size() != node.in_attr.size())
        FailField(row, "inputs",
                  "has " + std::to_string(node.inputs.size()) + " entries, \"in_attr\" has " +
                      std::to_string(node.in_attr.size()));
    node.list = ListOf(row);
    node.may_change = !Optional(row, "skipped", AMP_JSON_STRING);
    node.admits_low = TrueKeys(row, "f16_allowed");
    node.has_low_kernel = TrueKeys(row, "f16_kernel");
    for (const auto &change : Pairs(row, "changed", Optional(row, "changed", AMP_JSON_OBJECT)))
        node.changed.insert(change.first);
    for (const auto &paint : Pairs(row, "paint", Optional(row, "paint", AMP_JSON_OBJECT))) node.paint.insert(paint);
    return node;
}

std::vector<Cast> ReadCasts(const Row &row) {
    std::vector<Cast> casts;
    const amp_json *array = Required(row, "casts", AMP_JSON_ARRAY);
    for (size_t i = 0; i < array->array.count; i++) {
        Expect(row, "casts", &array->array.items[i], AMP_JSON_OBJECT);
        const Row of_cast = {row.place, &array->array.items[i], nullptr};
        Cast cast;
        cast.source = Name(of_cast, "src");
        cast.to_f32 = Name(of_cast, "to") == "float32";
        cast.readers = Names(of_cast, "consumers");
        std::sort(cast.readers.begin(), cast.readers.end());
        casts.push_back(cast);
    }
    return casts;
}

// ---- references ----------------------------------------------------------------------------------------------------

std::string Called(const Node &node) { return "node " + node.name + " (" + node.op + ")"; }

void ResolveInputs(const std::string &path, Graph *graph) {
    std::map<std::string, int> numbers;
    for (size_t i = 0; i < graph->nodes.size(); i++) {
        const Node &node = graph->nodes[i];
        if (!numbers.emplace(node.name, static_cast<int>(i)).second)
            Fail({path, node.line}, "a second " + Called(node) + " in one graph; names must differ");
    }
    for (Node &node : graph->nodes)
        for (Input &input : node.inputs) {
            auto found = numbers.find(input.source.substr(0, input.source.rfind(':')));
            if (found == numbers.end())
                Fail({path, node.line}, Called(node) + " reads " + input.source +
                                            ", but its graph has no such node; is a row missing, or the row that ends "
                                            "a graph?");
            const Node &source = graph->nodes[static_cast<size_t>(found->second)];
            if (input.port >= static_cast<int>(source.out_attr.size()))
                Fail({path, node.line}, Called(node) + " reads " + input.source + ", but that node has " +
                                            std::to_string(source.out_attr.size()) + " ports; mend one of the two");
            input.node = found->second;
        }
}

// Loops and casts: what painting asks of their one port.
void CheckPorts(const std::string &path, const Graph &graph) {
    for (const Node &node : graph.nodes) {
        const bool is_cast = node.op == "Cast";
        if (!is_cast && node.op != "NextIteration") continue;
        const char *attr = is_cast ? "DstT" : "T";
        if (node.out_attr != std::vector<std::string>{attr})
            Fail({path, node.line},
                 Called(node) + " must have one port, of the attribute " + attr + ", as in TensorFlow" + kFormat);
    }
    for (const Node &node : graph.nodes)
        for (size_t i = 0; i < node.inputs.size(); i++) {
            const Node &source = graph.nodes[static_cast<size_t>(node.inputs[i].node)];
            if (source.op == "NextIteration" && (node.op != "Merge" || node.in_attr[i] != "T"))
                Fail({path, node.line}, Called(node) + " reads the NextIteration " + source.name +
                                            "; only a Merge may, by its attribute T, as in TensorFlow" + kFormat);
        }
}

// ---- files ---------------------------------------------------------------------------------------------------------

using Document = std::unique_ptr<amp_json_document, decltype(&amp_json_free)>;

Document Parse(const Place &place, const char *text, size_t size) {
    amp_json_document *document = nullptr;
    amp_error err = {};
    if (amp_json_parse(text, size, nullptr, nullptr, &document, &err))
        Fail(place, std::string(err.message) + "; each line is one row of JSON: is the file cut off?");
    Document owned(document, amp_json_free);
    if (amp_json_root(document)->kind != AMP_JSON_OBJECT)
        Fail(place, std::string("a row is an object of JSON") + kFormat);
    return owned;
}

// The graph of FP16 and of BF16, of the same rows.
using Graphs = std::array<Graph, 2>;

// Takes a row into the graphs; true where it ends them.
bool TakeRow(const Place &place, const amp_json *json, Graphs *graphs) {
    const Row plain = {place, json, nullptr};
    const Row rows[] = {plain, {place, json, Optional(plain, "bf16", AMP_JSON_OBJECT)}};
    const std::string kind = Name(plain, "kind");
    if (kind != "node" && kind != "graph")
        FailField(plain, "kind", "is " + Quoted(kind) + "; rows are of kind node or graph");
    for (size_t i = 0; i < graphs->size(); i++) {
        Graph &graph = (*graphs)[i];
        if (kind == "node") {
            graph.nodes.push_back(ReadNode(rows[i]));
            continue;
        }
        graph.name = Name(plain, "graph");
        graph.casts = ReadCasts(rows[i]);
    }
    return kind == "graph";
}

// The graphs that the last row ends: without "modes", of the first.
std::vector<size_t> Modes(const Row &row) {
    if (!amp_json_get(row.json, "modes")) return {0};
    std::vector<size_t> modes;
    for (const std::string &mode : Names(row, "modes")) {
        if (mode != "fp16" && mode != "bf16") FailField(row, "modes", "holds " + Quoted(mode) + ", not fp16 or bf16");
        modes.push_back(mode == "bf16");
    }
    return modes;
}

std::vector<Graph> Split(const std::string &path, const char *text, size_t size) {
    std::vector<Graph> graphs;
    Graphs both;
    Place place = {path, 0};
    for (const char *at = text, *const end = text + size; at < end;) {
        const char *line_end = std::find(at, end, '\n');
        place.line++;
        const Document document = Parse(place, at, static_cast<size_t>(line_end - at));
        const amp_json *row = amp_json_root(document.get());
        if (TakeRow(place, row, &both)) {
            for (const size_t mode : Modes({place, row, nullptr})) {
                ResolveInputs(path, &both[mode]);
                CheckPorts(path, both[mode]);
                graphs.push_back(std::move(both[mode]));
            }
            both = Graphs();
        }
        at = line_end + (line_end < end);
    }
    if (!both[0].nodes.empty())
        Fail(place, "the file ends inside a graph: the row of kind graph is missing; is the file cut off?");
    if (graphs.empty()) throw BadFile(path + ": holds no graph" + kFormat);
    return graphs;
}

} // namespace

std::vector<Graph> ReadGraphs(const std::string &path) {
    char *text = nullptr;
    size_t size = 0;
    amp_error err = {};
    if (amp_file_read(path.c_str(), 0, nullptr, &text, &size, &err)) throw BadFile(err.message);
    const auto free_text = [size](char *t) { amp_free(nullptr, t, size + 1); };
    const std::unique_ptr<char, decltype(free_text)> owned(text, free_text);
    return Split(path, text, size);
}

} // namespace paint_vectors
