// image_test.cc: image products with their epilogues, pooling, and sums over the pixels of a sample.
#include "tests/codegen/core_model.h"

namespace {

TEST_F(CoreModelTest, ConvolutionWithBiasAndRelu) {
    Check(Text(R"(  input %x : f32[N, 9, 7, 3]
  input %w : f32[3, 3, 3, 40]
  input %b : f32[40]
  %0 = const(; value = 0.0) : f32
  %1 = conv(%x, %w; stride = (2, 1), padding = (1, 1)) : f32[N, 5, 7, 40]
  %2 = add(%1, %b) : f32[N, 5, 7, 40]
  %y = maximum(%2, %0) : f32[N, 5, 7, 40]
  %w2 = permute(%w; dims = (0, 1, 3, 2)) : f32[3, 3, 40, 3]
  %dx = conv_data(%y, %w2; stride = (2, 1), padding = (1, 1)) : f32[N, 9, 7, 3]
  %dw = conv_weight(%x, %y; stride = (2, 1), padding = (1, 1)) : f32[3, 3, 3, 40]
  %dw2 = permute(%dw; dims = (3, 2, 0, 1)) : f32[40, 3, 3, 3]
  %db = reduce_sum(%y; dims = (1, 2)) : f32[N, 40]
  %dbn = reduce_sum(%db; dims = (0)) : f32[40]
  result y = %y
  result dx = %dx
  result dw = %dw2
  result db = %dbn
)"),
          {1, 3}, 2e-5);
}

// The gradient of a kernel of one weight is a tile of one element.
TEST_F(CoreModelTest, OneWeight) {
    Check(Text(R"(  input %x : f32[N, 7, 6, 1]
  input %w : f32[1, 1, 1, 1]
  %y = conv(%x, %w) : f32[N, 7, 6, 1]
  %dx = conv_data(%y, %w) : f32[N, 7, 6, 1]
  %dw = conv_weight(%x, %y) : f32[1, 1, 1, 1]
  %rate = const(; value = 0.5) : f32
  %step = mul(%dw, %rate) : f32[1, 1, 1, 1]
  %next = sub(%w, %step) : f32[1, 1, 1, 1]
  result y = %y
  result dx = %dx
  result next = %next
)"),
          {1, 3}, 2e-5);
}

// Channels in pairs, an odd number of them (which are stored as f32), and fewer than a panel.
TEST_F(CoreModelTest, SixteenBitConvolution) {
    for (const char *type : {"bf16", "f16"}) {
        std::string body;
        for (const char *channels : {"34", "33", "6"}) {
            std::string ops = R"(  input %x.CH : f32[N, 3, 4, CH]
  input %w.CH : f32[3, 3, CH, 36]
  %xh.CH = cast(%x.CH) : TYPE[N, 3, 4, CH]
  %wh.CH = cast(%w.CH) : TYPE[3, 3, CH, 36]
  %1.CH = conv(%xh.CH, %wh.CH; padding = (1, 1)) : f32[N, 3, 4, 36]
  %y.CH = cast(%1.CH) : TYPE[N, 3, 4, 36]
  %wt.CH = permute(%wh.CH; dims = (0, 1, 3, 2)) : TYPE[3, 3, 36, CH]
  %dx.CH = conv_data(%y.CH, %wt.CH; padding = (1, 1)) : f32[N, 3, 4, CH]
  %dw.CH = conv_weight(%xh.CH, %y.CH; padding = (1, 1)) : f32[3, 3, CH, 36]
  result y.CH = %1.CH
  result dx.CH = %dx.CH
  result dw.CH = %dw.CH
)";
            for (const auto &change :
                 std::vector<std::pair<std::string, std::string>>{{"TYPE", type}, {"CH", channels}})
                for (size_t at = ops.find(change.first); at != std::string::npos; at = ops.find(change.first))
                    ops.replace(at, change.first.size(), change.second);
            body += ops;
        }
        Check(Text(Sorted(body)), {2}, 4e-2);
    }
}

TEST_F(CoreModelTest, Pooling) {
    Check(Text(R"(  input %x : f32[N, 7, 8, 37]
  %y, %i = window_max(%x; kernel = (3, 2), stride = (2, 2), padding = (1, 0)) : f32[N, 4, 4, 37], i32[N, 4, 4, 37]
  %0 = const(; value = 0.5) : f32
  %z = mul(%y, %0) : f32[N, 4, 4, 37]
  %dx = window_max_grad(%z, %i; kernel = (3, 2), stride = (2, 2), padding = (1, 0)) : f32[N, 7, 8, 37]
  %dx2 = add(%dx, %x) : f32[N, 7, 8, 37]
  %s = window_sum(%x; kernel = (2, 3), stride = (1, 2), padding = (1, 1)) : f32[N, 8, 4, 37]
  %ds = window_sum_grad(%s; kernel = (2, 3), stride = (1, 2), padding = (1, 1)) : f32[N, 7, 8, 37]
  result y = %z
  result i = %i
  result dx = %dx2
  result s = %s
  result ds = %ds
)"),
          {1, 3}, 1e-6);
}

// Only the places of the largest are read, as where a checkpoint has them computed again.
TEST_F(CoreModelTest, PlacesOfPoolingAlone) {
    Check(Text(R"(  input %x : f32[N, 7, 8, 37]
  input %z : f32[N, 4, 4, 37]
  %y, %i = window_max(%x; kernel = (3, 2), stride = (2, 2), padding = (1, 0)) : f32[N, 4, 4, 37], i32[N, 4, 4, 37]
  %dx = window_max_grad(%z, %i; kernel = (3, 2), stride = (2, 2), padding = (1, 0)) : f32[N, 7, 8, 37]
  result dx = %dx
)"),
          {1, 3}, 1e-6);
}

// To sizes that do not divide one another, up and down, and back; from half numbers; one pixel.
TEST_F(CoreModelTest, OtherSizes) {
    std::string body;
    int n = 0;
    for (const char *mode : {"mode = area", "mode = bilinear", "mode = bilinear, align_corners = true"})
        for (const char *size : {"3, 5", "14, 32", "9, 8", "1, 1"}) {
            std::string i = std::to_string(n++), given = mode;
            body += "  %y" + i + " = resample(%x; " + given + ") : f32[N, " + size + ", 37]\n";
            body += "  %d" + i + " = resample_grad(%y" + i + "; " + given + ") : f32[N, 7, 8, 37]\n";
            body += "  %z" + i + " = resample(%wide; " + given + ") : f32[N, " + size + ", 5]\n";
            body += "  result y" + i + " = %y" + i + "\n  result d" + i + " = %d" + i + "\n  result z" + i + " = %z" +
                    i + "\n";
        }
    std::string ops, results;
    for (size_t at = 0, end; at < body.size(); at = end + 1) {
        end = body.find('\n', at);
        std::string line = body.substr(at, end - at + 1);
        (line.rfind("  result", 0) == 0 ? results : ops) += line;
    }
    Check(Text("  input %x : f32[N, 7, 8, 37]\n  input %h : f16[N, 1, 4, 5]\n  %wide = cast(%h) : f32[N, 1, 4, 5]\n" +
               ops + results),
          {1, 3}, 1e-5);
}

// One number per row, per column, and at all, in every form that a product reads: found by random programs.
TEST_F(CoreModelTest, LinesFeedProducts) {
    for (const char *type : {"f32", "bf16", "f16"}) {
        std::string text = Text(R"(  input %x : f32[N, 43]
  input %w : f32[7, 1]
  input %v : f32[7, 43]
  %1 = reduce_max(%x; dims = (1), keep = true) : f32[N, 1]
  %2 = tanh(%1) : f32[N, 1]
  %3 = reduce_sum(%x; dims = (0), keep = true) : f32[1, 43]
  %4 = tanh(%3) : f32[1, 43]
  %5 = reduce_sum(%4; dims = (1), keep = true) : f32[1, 1]
  %rh = cast(%2) : TYPE[N, 1]
  %ch = cast(%4) : TYPE[1, 43]
  %mh = cast(%3) : TYPE[1, 43]
  %oh = cast(%5) : TYPE[1, 1]
  %wh = cast(%w) : TYPE[7, 1]
  %vh = cast(%v) : TYPE[7, 43]
  %a = contract(%rh, %wh; tb = true) : f32[N, 7]
  %b = contract(%ch, %vh; tb = true) : f32[1, 7]
  %m = contract(%mh, %vh; tb = true) : f32[1, 7]
  %c = contract(%oh, %wh; tb = true) : f32[1, 7]
  %ah = cast(%a) : TYPE[N, 7]
  %bh = cast(%b) : TYPE[1, 7]
  %da = contract(%ah, %rh; ta = true) : f32[7, 1]
  %db = contract(%bh, %ch; ta = true) : f32[7, 43]
  %dc = contract(%bh, %oh; ta = true) : f32[7, 1]
  result a = %a
  result b = %b
  result m = %m
  result c = %c
  result da = %da
  result db = %db
  result dc = %dc
)");
        for (size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) text.replace(at, 4, type);
        Check(text, {1, 2, 33}, std::string(type) == "f32" ? 2e-5 : 3e-2);
    }
}

// What only pooling reads is computed where it reads it: panels and rows, vectors along the channels, casts, padding.
TEST_F(CoreModelTest, PoolingOfWhatItMakesItself) {
    for (const char *channels : {"64", "37", "5"}) {
        std::string text = Text(R"(  input %x : f32[N, 6, 7, 2]
  input %w : f32[3, 3, 2, CH]
  input %a : f32[CH]
  input %b : f32[CH]
  input %v : f32[N, 6, 7, CH]
  %h = conv(%x, %w; padding = (1, 1)) : f32[N, 6, 7, CH]
  %hh = cast(%h) : f16[N, 6, 7, CH]
  %1 = cast(%hh) : f32[N, 6, 7, CH]
  %2 = sub(%1, %a) : f32[N, 6, 7, CH]
  %3 = exp(%b) : f32[CH]
  %4 = mul(%2, %3) : f32[N, 6, 7, CH]
  %5 = cast(%4) : f16[N, 6, 7, CH]
  %6 = cast(%5) : f32[N, 6, 7, CH]
  %y, %i = window_max(%6; kernel = (2, 2), stride = (3, 2), padding = (1, 0)) : f32[N, 3, 3, CH], i32[N, 3, 3, CH]
  %k = const(; value = 0.0078125) : f32
  %8 = mul(%v, %k) : f32[N, 6, 7, CH]
  %9 = add(%8, %1) : f32[N, 6, 7, CH]
  %s = window_sum(%9; kernel = (2, 3), stride = (2, 3), padding = (0, 1)) : f32[N, 3, 3, CH]
  %z = mul(%s, %k) : f32[N, 3, 3, CH]
  result y = %y
  result i = %i
  result z = %z
)");
        for (size_t at = text.find("CH"); at != std::string::npos; at = text.find("CH")) text.replace(at, 2, channels);
        Check(text, {1, 3}, 2e-3);
    }
}

// One number for all pixels of a sample, which others read from memory pixel by pixel.
TEST_F(CoreModelTest, SegmentsSpreadOverTheirRows) {
    Check(Text(R"(  input %x : f32[N, 5, 3, 43]
  input %r : f32[N, 43]
  %1 = reduce_sum(%x; dims = (1, 2)) : f32[N, 43]
  %2 = mul(%1, %r) : f32[N, 43]
  %3 = reshape(%2) : f32[N, 1, 1, 43]
  %spread = expand(%3) : f32[N, 5, 3, 43]
  %4 = reshape(%r) : f32[N, 1, 1, 43]
  %given = expand(%4) : f32[N, 5, 3, 43]
  %half = cast(%spread) : f16[N, 5, 3, 43]
  %again = cast(%half) : f32[N, 5, 3, 43]
  %twice = add(%given, %given) : f32[N, 5, 3, 43]
  %5 = mul(%spread, %x) : f32[N, 5, 3, 43]
  %s = reduce_sum(%5; dims = (1, 2)) : f32[N, 43]
  result spread = %spread
  result given = %given
  result rounded = %again
  result twice = %twice
  result s = %s
)"),
          {1, 3}, 1e-5);
}

// One number per sample beside one per sample and channel.
TEST_F(CoreModelTest, SegmentsBesideOneNumberEach) {
    Check(Text(R"(  input %x : f32[N, 6, 43]
  %1 = reduce_sum(%x; dims = (1), keep = true) : f32[N, 1, 43]
  %2 = reduce_sum(%1; dims = (2), keep = true) : f32[N, 1, 1]
  %3 = mul(%x, %x) : f32[N, 6, 43]
  %4 = reduce_sum(%3; dims = (1), keep = true) : f32[N, 1, 43]
  %5 = sub(%4, %2) : f32[N, 1, 43]
  %6 = reshape(%4) : f32[N, 43]
  %7 = reshape(%2) : f32[N, 1]
  %8 = mul(%6, %7) : f32[N, 43]
  result a = %5
  result b = %8
)"),
          {1, 3}, 1e-5);
}

// The mean over the pixels of each sample, in every form that a product after it reads.
TEST_F(CoreModelTest, SegmentsFeedProducts) {
    for (const char *type : {"f32", "bf16"}) {
        std::string text = Text(R"(  input %x : f32[N, 5, 3, 43]
  input %w : f32[7, 43]
  %k = const(; value = 0.0625) : f32
  %1 = reduce_sum(%x; dims = (1, 2)) : f32[N, 43]
  %2 = mul(%1, %k) : f32[N, 43]
  %m = cast(%2) : TYPE[N, 43]
  %wh = cast(%w) : TYPE[7, 43]
  %y = contract(%m, %wh; tb = true) : f32[N, 7]
  %yh = cast(%y) : TYPE[N, 7]
  %dw = contract(%yh, %m; ta = true) : f32[7, 43]
  %back = reshape(%2) : f32[N, 1, 1, 43]
  %e = expand(%back) : f32[N, 5, 3, 43]
  %d = sub(%x, %e) : f32[N, 5, 3, 43]
  %v = mul(%d, %d) : f32[N, 5, 3, 43]
  %var = reduce_sum(%v; dims = (1, 2), keep = true) : f32[N, 1, 1, 43]
  %big = reduce_max(%d; dims = (1, 2)) : f32[N, 43]
  result y = %y
  result dw = %dw
  result d = %d
  result var = %var
  result big = %big
)");
        for (size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) text.replace(at, 4, type);
        Check(text, {1, 2, 33}, std::string(type) == "f32" ? 2e-5 : 2e-2);
    }
}

} // namespace
