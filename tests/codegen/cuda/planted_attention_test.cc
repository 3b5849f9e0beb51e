// planted_attention_test.cc: bugs planted in attention and its gradient are found (planted.h).
#include "tests/codegen/attention_cases.h"
#include "tests/codegen/cuda/planted.h"

namespace {

class PlantedAttention : public Planted {
  protected:
    void Use(attention::Case c) {
        tolerance_ = 6e-3;
        c.type = "f16";
        c.keeps = c.drops;
        Planted::Use(Sorted(attention::All({c})), 1, 80);
        ExpectRight();
    }
};

// Three tiles of keys and two blocks of queries; some see no key of a tile.
const attention::Case causal = {{1, 1, 150, 150, 16, 16}, "; scale = 0.25, causal = true"};

TEST_F(PlantedAttention, WrongKeysAreSeen) {
    Use(causal);
    ExpectWrong({{"(!Shape::CAUSAL || key <= query)", "(!Shape::CAUSAL || key < query)"}});
    ExpectWrong({{"(Shape::CAUSAL && key0 + STEP > first + 1)", "(Shape::CAUSAL && key0 + STEP > first + STEP)"}});
    ExpectWrong({{"(Shape::CAUSAL && key_end > query0 + 1)", "(Shape::CAUSAL && key_end > query0 + 17)"}});
    ExpectWrong({{"!Shape::CAUSAL || key0 <= first + 15;", "!Shape::CAUSAL || key0 + STEP <= first + 15;"}});
    ExpectWrong({{"begin = row0 / STEP < end ? row0 / STEP : end;", "begin = row0 / STEP + 1;"}});
    ExpectWrong({{"end = (seen + STEP - 1) / STEP;", "end = seen / STEP - 1;"}});
    ExpectWrong({{"key0 + STEP > KEYS_OF(rule) || first + 16 > QUERIES_OF(rule);", "false;"},
                 {"(Shape::CAUSAL && key0 + STEP > first + 1)", "(Shape::CAUSAL && key0 + STEP > first + STEP)"}});
}

TEST_F(PlantedAttention, TilesPastAnEndAreTakenForWhole) {
    Use({{1, 1, 128, 150, 16, 16}, "; scale = 0.25"});
    ExpectWrong({{"Shape::QUERY_UNIT % ROWS == 0 && Shape::KEY_UNIT % STEP == 0", "Shape::QUERY_UNIT % ROWS == 0"}});
    ExpectWrong({{"!Shape::CAUSAL || key <= query);", "true) || key >= KEYS_OF(*this);"}});
}

TEST_F(PlantedAttention, WhatWasSummedIsNotScaled) {
    Use(causal);
    ExpectWrong({{"sum[half] *= change[half];", ""}});
    ExpectWrong({{"result[j][i] *= change[i / 2];", ";"}});
    ExpectWrong({{"largest[half] = most;", "largest[half] = base[half] + 1.0f;"}});
}

TEST_F(PlantedAttention, GradientIsOfSomethingElse) {
    Use({{2, 1, 40, 70, 16, 16}, "; scale = 0.25"});
    ExpectWrong({{"fma_f32(slopes[j][i], kept, -m)", "fma_f32(slopes[j][i], kept, 0.0f)"}});
    ExpectWrong({{"one.first += head * rows.q_head, two", "two"}});
    ExpectWrong({{"if constexpr (FIRST) along2.add(slopes, own2, stage);",
                  "if constexpr (FIRST) along1.add(slopes, own1, stage);"}});
    ExpectWrong({{"bases[STEP + column]", "bases[column]"}});
    ExpectWrong({{"rows.numbers + head * (int64_t)(2 * QUERIES_OF(rule))", "rows.numbers"}});
    ExpectWrong({{"i / STEP * QUERIES_OF(rule) + query", "query"}});
}

// Two blocks of queries have numbers for the two blocks of keys.
TEST_F(PlantedAttention, KeysDoNotWaitForTheNumbersOfQueries) {
    const std::string race = "race in global memory at .*with nothing that orders|uninitialised";
    Use(causal);
    ExpectFault({{"if (BY_KEYS) waits_for_turns(rows.ticket, rows.query_turns);", "if (BY_KEYS) ;"}},
                EXEC_LAUNCH_FAILED, race);
    ExpectFault({{"atom.release.gpu", "atom.relaxed.gpu"}}, EXEC_LAUNCH_FAILED, race);
    ExpectFault({{"        else find_numbers();\n        ends_turn(rows.ticket, rows.turns);\n",
                  "        ends_turn(rows.ticket, rows.turns);\n        if (!BY_KEYS) find_numbers();\n"}},
                EXEC_LAUNCH_FAILED, race);
    // the ticket is no zero after the run before
    ExpectFault({{"ends_turn(rows.ticket, rows.turns);", "ends_turn(rows.ticket, 0);"}}, EXEC_LAUNCH_FAILED, race,
                [](CudaRun *run) { EXPECT_EQ(run->RunToFault(1), ""); });
}

TEST_F(PlantedAttention, BarrierIsMissing) {
    const std::string race = "race in shared memory|of shared memory: uninitialised|a cp.async is in flight";
    const std::string arrives = "            await_copies<0>();\n            __syncthreads();\n",
                      waits = "            await_copies<0>();\n";
    Use(causal);
    for (const char *next :
         {"            Values::", "            if (key0 + STEP < keys) Keys::", "            if (STAGES > 1 && more)"})
        ExpectFault({{arrives + next, waits + next}}, EXEC_LAUNCH_FAILED, race);
    Use({{2, 1, 33, 70, 80, 80}, "; scale = 0.25"}); // queries of wider heads are held in registers
    ExpectFault({{"if (HELD) __syncthreads();\n        along.start", "along.start"}}, EXEC_LAUNCH_FAILED, race);
}

// Rows of 80 columns go through shared memory in two turns.
TEST_F(PlantedAttention, SumsAreStoredWrongly) {
    const std::string race = "race in shared memory|of shared memory: uninitialised";
    Use({{2, 1, 33, 70, 80, 80}, "; scale = 0.25"});
    ExpectFault({{"__syncthreads(); /* the tiles have been read */", ""}}, EXEC_LAUNCH_FAILED, race);
    ExpectFault({{"__syncwarp(); /* the columns before have been taken */", ";"}}, EXEC_LAUNCH_FAILED, race);
    ExpectFault({{"put(part, sums, column0, by);\n            __syncwarp();", "put(part, sums, column0, by);"}},
                EXEC_LAUNCH_FAILED, race);
    ExpectWrong({{"part + (lane / 4 + half * 8)", "part + ((lane / 4 ^ 1) + half * 8)"}});
    ExpectWrong({{"to.put((first + row) * to.pitch + column0 + column, x);",
                  "to.put((first + row) * to.pitch + column0 + (column ^ V), x);"}});
}

TEST_F(PlantedAttention, NumbersOfDropoutAreExchangedWrongly) {
    Use({{1, 1, 37, 68, 16, 16}, "; scale = 0.25, p = 0.5, key = \"k\"", "", "", true});
    ExpectWrong({{"set(odd ? other : drawn, odd ? drawn : other, 0);", "set(drawn, other, 0);"}});
    ExpectWrong({{"row >> (shift + threadIdx.x % 2 * 2)", "row >> shift"}});
    ExpectWrong({{"> last_dropped(p) ? 1u : 0u", "> last_dropped(0.75f) ? 1u : 0u"}});
    ExpectWrong({{"threadIdx.x % 2 * 8, key = other + threadIdx.x % 4 / 2 * 4;", "threadIdx.x % 2 * 8, key = other;"}});
}

// Keys of two words, heads that share them, and tiles of fewer keys than a word has.
TEST_F(PlantedAttention, BitsOfDropoutAreOfOthers) {
    const std::string drops = "; scale = 0.25, p = 0.5, key = \"k\"";
    Use({{2, 1, 37, 68, 16, 16}, drops, "", "", true});
    ExpectWrong({{"rule.bits + head * rule.bits_of_head()", "rule.bits"}});
    ExpectWrong(
        {{"word * (int64_t)QUERIES_OF(rule) + query : 0", "(word ^ 1) * (int64_t)QUERIES_OF(rule) + query : 0"}});
    ExpectWrong({{"place(min(query + 8, last), other)], other", "place(min(query, last), other)], other"}});
    ExpectWrong({{"own % 64 / 2 + lane / 4 % 4", "own % 64 / 2"}});
    ExpectWrong({{"bits.x) >> i / 2 * 4 & 1", "bits.x) >> i / 2 * 2 & 1"}});
    const std::string copies = "        if (BITS) fetch_bits((uint32_t *)(stage + Other1::BYTES + Other2::BYTES + "
                               "NUMBERS), head, from);\n",
                      closes = "        close_copies();\n";
    ExpectFault({{copies + closes, closes + copies}}, EXEC_LAUNCH_FAILED,
                "race in shared memory|of shared memory: uninitialised|a cp.async is in flight");
    Use({{1, 1, 18, 36, 256, 256}, drops, "", "", true});
    ExpectWrong({{": word | drawn << other % 64 / 2;", ": drawn;"}});
    ExpectWrong({{"place(min(query + 8, last), other)], other % 64 / 2", "place(min(query + 8, last), other)], 0"}});
}

// Of T keys, where two heads of T queries share them.
TEST_F(PlantedAttention, TheGradientDrawsOtherNumbers) {
    const std::string body = R"(func infer {
  input %seed : i64
  input %step : i64
  input %q : f16[N, 2, T, 16]
  input %k : f16[N, 1, T, 16]
  input %g : f16[N, 2, T, 16]
  %y, %l = attend(%q, %k, %k, %seed, %step; scale = 0.25, p = 0.5, key = "k") : f32[N, T, 32], f32[N, 2, T, 1]
  %r = cast(%y) : f16[N, T, 32]
  %a, %b, %c = attend_grad(%g, %q, %k, %k, %r, %l, %seed, %step; scale = 0.25, p = 0.5, key = "k")
      : f32[N, T, 32], f32[N, T, 16], f32[N, T, 16]
  result a = %a
  result b = %b
  result c = %c
}
)";
    run_length = 20;
    tolerance_ = 6e-3;
    const auto use = [&](const char *unit) {
        UseModule("module \"core\" stage lower {\n  length 1024 unit " + std::string(unit) + "\n}\n" + body, 1, 80);
        ExpectRight();
        ExpectWrong({{"by.row = rule.row + head * Rule::HEAD_NUMBERS;", ""}});
        ExpectWrong({{"rule.key_count = (int)(t);", "rule.key_count = 19;"}});
    };
    use("4");
    ExpectWrong({{">> g % 4 & 0x11111111u) << i", ">> (g ^ 1) % 4 & 0x11111111u) << i"}});
    ExpectWrong({{"(g / 4 * 4 + i) * 4 + q)", "(g / 4 * 4 + (i ^ 1)) * 4 + q)"}});
    use("1");
    run_length = 1;
}

TEST_F(PlantedAttention, MaskIsReadElsewhere) {
    Use({{2, 1, 37, 70, 16, 16}, "; scale = 0.25", "f32[2, 37, 70]"});
    ExpectWrong({{"x += added[query * mask_row + key * mask_column];", "x += added[query * mask_row];"}});
    ExpectWrong({{"by.added = rule.added + head * rows.mask_head;", ""}});
}

} // namespace
