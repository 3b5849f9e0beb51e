/* compile_model.cc: see compile_model.h. */
#include "tests/frontend/compile_model.h"

namespace {

struct Files {
    Arena *arena;
    const std::map<std::string, std::string> *texts;
};

const Source *FindInclude(void *user, const char *name, const char *) {
    Files *files = static_cast<Files *>(user);
    auto text = files->texts->find(name);
    if (text == files->texts->end()) return nullptr;
    Source *source = arena_new(files->arena, Source);
    source->name = text->first.c_str();
    source->text = text->second.c_str();
    source->len = text->second.size();
    return source;
}

/* Everything that the arena may jump out of: plain C data, none of it local to the function that set the guard. */
struct Compilation {
    Arena arena;
    Diags diags;
    Text out, reread;
    const char *broken;
    Module *module;
};

bool Compile(Compilation *c, const Source *source, const FrontendOptions *options) {
    if (setjmp(c->arena.out_of_memory)) return false;
    diags_init(&c->diags, &c->arena);
    text_init(&c->out, &c->arena);
    text_init(&c->reread, &c->arena);
    c->module = frontend_compile(&c->arena, &c->diags, source, options);
    for (int i = 0; i < c->diags.list.len; i++) diag_format(&c->out, c->diags.list.data[i]);
    if (!c->module) return true;
    ir_compact(c->module);
    c->broken = ir_verify(c->module);
    ir_print(&c->out, c->module);
    Source printed = {"printed.ir", text_str(&c->out), c->out.len};
    Module *again = ir_read(&c->arena, &c->diags, &printed);
    if (again) ir_print(&c->reread, again);
    return true;
}

} // namespace

CompiledModel CompileModel(const std::string &name, const std::string &text, const CompileSettings &settings) {
    std::vector<FrontendDefine> defines;
    for (const auto &define : settings.defines) defines.push_back({define.first.c_str(), define.second.c_str()});
    auto c = std::make_unique<Compilation>();
    arena_init(&c->arena, settings.allocator);
    Files files = {&c->arena, &settings.files};
    Source source = {name.c_str(), text.c_str(), text.size()};
    FrontendOptions options = {
        defines.data(), static_cast<int>(defines.size()), FindInclude, &files, settings.max_ops, false, false, nullptr};
    CompiledModel result;
    result.out_of_memory = !Compile(c.get(), &source, &options);
    if (!result.out_of_memory) {
        result.good = c->module != nullptr;
        result.text = text_str(&c->out);
        result.broken = c->broken ? c->broken : "";
        result.reread = text_str(&c->reread);
        result.errors = c->diags.errors;
    }
    arena_free(&c->arena);
    return result;
}
