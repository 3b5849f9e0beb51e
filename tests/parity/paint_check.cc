// paint_check.cc: from rows to vertices, and from marks to the types and casts that the rows hold.
#include "tests/parity/paint_check.h"

#include <algorithm>
#include <csetjmp>
#include <new>

namespace paint_vectors {
namespace {

// ---- vertices ------------------------------------------------------------------------------------------------------

// An op that hands on the variable itself: Identity of it, and Enter of that, or of such an Enter.  Each node is
// followed once.
std::vector<bool> FindVariableReads(const Graph &graph) {
    std::vector<bool> reads(graph.nodes.size()), known(graph.nodes.size());
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        std::vector<size_t> chain;
        size_t at = i;
        while (!known[at] && graph.nodes[at].op == "Enter" && !graph.nodes[at].inputs.empty()) {
            known[at] = true; // and false, for one that leads to itself
            chain.push_back(at);
            at = static_cast<size_t>(graph.nodes[at].inputs[0].node);
        }
        const Node &first = graph.nodes[at];
        if (!known[at] && first.op == "Identity" && !first.inputs.empty()) {
            const std::string &source = graph.nodes[static_cast<size_t>(first.inputs[0].node)].op;
            reads[at] = source == "Variable" || source == "VariableV2";
        }
        known[at] = true;
        for (size_t enter : chain) reads[enter] = reads[at];
    }
    return reads;
}

PaintVertex VertexOf(const Node &node, const std::string &attr, const std::string &type, bool reads_variable) {
    PaintVertex v = {};
    v.list = node.list;
    v.may_change = node.may_change;
    v.is_f32 = type == "float32";
    v.admits_low = node.admits_low.count(attr) > 0;
    v.has_low_kernel = node.has_low_kernel.count(attr) > 0;
    v.reads_variable = reads_variable;
    v.ends_iteration = node.op == "NextIteration" && attr == "T";
    v.casts_to_f32 = node.op == "Cast" && attr == "DstT" && v.is_f32;
    return v;
}

int VertexOfInput(const Graph &graph, const Vertices &vertices, const Input &input) {
    const Node &source = graph.nodes[static_cast<size_t>(input.node)];
    return vertices.of_node[static_cast<size_t>(input.node)].at(source.out_attr[static_cast<size_t>(input.port)]);
}

// ---- what marks mean -----------------------------------------------------------------------------------------------

std::string Join(const std::vector<std::string> &words) {
    std::string text;
    for (const std::string &word : words) text += (text.empty() ? "" : " ") + word;
    return text.empty() ? "nothing" : text;
}

std::string SaidOf(const PaintMark &m) {
    const std::string pass = "@" + std::to_string(m.pass);
    if (m.colour == PAINT_ALLOW) return "ALLOW" + pass;
    if (m.colour == PAINT_DENY) return "DENY" + pass;
    return m.pass == PAINT_UNTOUCHED ? "nothing" : "UNALLOW" + pass;
}

// TensorFlow logs the six passes alone, so what was decided after them counts where a row says that it knows it.
bool IsLate(const std::string &said) {
    const std::string pass = said.size() < 2 ? "" : said.substr(said.size() - 2);
    return pass == "@7" || pass == "@8";
}

bool IsSamePaint(const std::string &expected, const std::string &ours) {
    return expected == ours || (IsLate(ours) && !IsLate(expected));
}

struct CastKey {
    std::string source;
    bool to_f32;
    bool operator<(const CastKey &other) const {
        return source != other.source ? source < other.source : to_f32 < other.to_f32;
    }
};

using Casts = std::map<CastKey, std::string>; // the readers

class Comparison {
  public:
    explicit Comparison(const Graph &graph) : graph_(graph), vertices_(VerticesOf(graph)), marks_(Paint(vertices_)) {}

    std::vector<std::string> Run() {
        for (size_t i = 0; i < graph_.nodes.size(); i++) {
            CompareTypes(i);
            ComparePaint(i);
        }
        CompareCasts();
        return std::move(lines_);
    }

  private:
    void Differ(const std::string &where, const std::string &expected, const std::string &ours) {
        lines_.push_back(graph_.name + ": " + where + ": expected " + expected + ", ours " + ours);
    }

    static std::string Called(const Node &node) { return "node " + node.name + " (" + node.op + ")"; }

    const PaintMark &MarkOf(size_t node, const std::string &attr) const {
        return marks_[static_cast<size_t>(vertices_.of_node[node].at(attr))];
    }

    bool IsLow(size_t node, const std::string &attr) const { return MarkOf(node, attr).colour == PAINT_ALLOW; }

    void CompareTypes(size_t i) {
        const Node &node = graph_.nodes[i];
        std::set<std::string> ours;
        for (const auto &type : node.types)
            if (type.second == "float32" && type.first[0] != '=' && IsLow(i, type.first)) ours.insert(type.first);
        if (ours == node.changed) return;
        Differ(Called(node) + ": low types", Join({node.changed.begin(), node.changed.end()}),
               Join({ours.begin(), ours.end()}));
    }

    void ComparePaint(size_t i) {
        const Node &node = graph_.nodes[i];
        std::map<std::string, std::string> expected = node.paint;
        for (const auto &type : node.types) {
            const std::string attr = type.first.substr(type.first[0] == '=');
            auto found = expected.find(attr);
            const std::string wanted = found == expected.end() ? "nothing" : found->second;
            if (found != expected.end()) expected.erase(found);
            const std::string ours = SaidOf(MarkOf(i, type.first));
            if (!IsSamePaint(wanted, ours)) Differ(Called(node) + ": paint of " + attr, wanted, ours);
        }
        for (const auto &rest : expected)
            Differ(Called(node) + ": paint of " + rest.first, rest.second, "no such type");
    }

    Casts OurCasts() const {
        std::map<CastKey, std::vector<std::string>> readers;
        for (size_t i = 0; i < graph_.nodes.size(); i++) {
            const Node &node = graph_.nodes[i];
            for (size_t k = 0; k < node.inputs.size(); k++) {
                const size_t source = static_cast<size_t>(node.inputs[k].node);
                const std::string &attr = graph_.nodes[source].out_attr[static_cast<size_t>(node.inputs[k].port)];
                const PaintVertex &v = vertices_.vertices[static_cast<size_t>(vertices_.of_node[source].at(attr))];
                const bool source_is_low = IsLow(source, attr);
                if (v.is_f32 && source_is_low != IsLow(i, node.in_attr[k]))
                    readers[{node.inputs[k].source, source_is_low}].push_back(node.name + ":" + std::to_string(k));
            }
        }
        Casts casts;
        for (auto &cast : readers) {
            std::sort(cast.second.begin(), cast.second.end());
            casts[cast.first] = Join(cast.second);
        }
        return casts;
    }

    void CompareCasts() {
        Casts ours = OurCasts();
        for (const Cast &cast : graph_.casts) {
            const std::string what = "cast of " + cast.source + (cast.to_f32 ? " to f32 for" : " to low for");
            auto found = ours.find({cast.source, cast.to_f32});
            const std::string readers = found == ours.end() ? "nothing" : found->second;
            if (readers != Join(cast.readers)) Differ(what, Join(cast.readers), readers);
            if (found != ours.end()) ours.erase(found); // a second one of the same port is one too many
        }
        for (const auto &cast : ours)
            Differ("cast of " + cast.first.source + (cast.first.to_f32 ? " to f32 for" : " to low for"), "nothing",
                   cast.second);
    }

    const Graph &graph_;
    const Vertices vertices_;
    const std::vector<PaintMark> marks_;
    std::vector<std::string> lines_;
};

} // namespace

Vertices VerticesOf(const Graph &graph) {
    Vertices v;
    const std::vector<bool> reads_variable = FindVariableReads(graph);
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        v.of_node.emplace_back();
        for (const auto &type : graph.nodes[i].types) {
            v.of_node.back()[type.first] = static_cast<int>(v.vertices.size());
            v.vertices.push_back(VertexOf(graph.nodes[i], type.first, type.second, reads_variable[i]));
        }
    }
    for (size_t i = 0; i < graph.nodes.size(); i++)
        for (size_t k = 0; k < graph.nodes[i].inputs.size(); k++)
            v.edges.push_back(
                {VertexOfInput(graph, v, graph.nodes[i].inputs[k]), v.of_node[i].at(graph.nodes[i].in_attr[k])});
    return v;
}

std::vector<PaintMark> Paint(const Vertices &v) {
    const PaintGraph graph = {v.vertices.data(), v.edges.data(), static_cast<int>(v.vertices.size()),
                              static_cast<int>(v.edges.size())};
    std::vector<PaintMark> marks(v.vertices.size());
    Arena arena;
    arena_init(&arena, nullptr);
    if (setjmp(arena.out_of_memory)) {
        arena_free(&arena);
        throw std::bad_alloc();
    }
    const PaintMark *painted = paint_graph(&arena, &graph);
    std::copy(painted, painted + marks.size(), marks.begin());
    arena_free(&arena);
    return marks;
}

std::vector<std::string> Differences(const Graph &graph) { return Comparison(graph).Run(); }

int CheckFiles(const std::vector<std::string> &paths, std::ostream &out, std::ostream &err) {
    size_t agree = 0, differ = 0, nodes = 0, casts = 0, differences = 0;
    try {
        for (const std::string &path : paths)
            for (const Graph &graph : ReadGraphs(path)) {
                const std::vector<std::string> lines = Differences(graph);
                for (const std::string &line : lines) out << line << "\n";
                (lines.empty() ? agree : differ)++;
                nodes += graph.nodes.size();
                casts += graph.casts.size();
                differences += lines.size();
            }
    } catch (const BadFile &bad) {
        err << bad.what() << "\n";
        return 2;
    } catch (const std::bad_alloc &) {
        err << "out of memory; give fewer or smaller files\n";
        return 2;
    }
    out << agree << " graphs agree, " << differ << " differ: " << nodes << " nodes, " << casts << " casts, "
        << differences << " differences\n";
    return differ ? 1 : 0;
}

} // namespace paint_vectors
