// csv_test.cc: what a table becomes, by a schema or without one; and what is said of tables and schemas that are wrong.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>

#include "tests/tools/data_fixture.h"
#include "tools/amprun/data/csv.h"

namespace {

const char kTable[] = "age,job,pay,bought\n"
                      "20,cook,1,no\n"
                      "40,clerk,2,yes\n"
                      ",cook,3,no\n"
                      "60,,6,yes\n";
const char kSchema[] = "amp csv 1\nheld 0\nnumber age\ncategory job\nnumber pay raw\ncategory bought target\n";

class CsvTest : public DataFixture {
  protected:
    // A model of two numbers, one category and a class.
    void SetUp() override {
        DataFixture::SetUp();
        inputs.model = "buyers";
        inputs.count = 3;
        inputs.model_inputs = 2;
        inputs.train_inputs = 1;
        inputs.input[0] = Input("numbers", AMP_DT_F32, {2});
        inputs.input[1] = Input("categories", AMP_DT_I32, {1});
        inputs.input[2] = Input("class", AMP_DT_I32, {});
    }
    std::string Spec(const std::string &table, const std::string &schema, const std::string &options = "") {
        std::string spec = "csv:" + Write("table.csv", table);
        if (!schema.empty()) spec += ",schema=" + Write("schema", schema);
        return spec + options;
    }
    int Read(const std::string &table, const std::string &schema, const std::string &options = "",
             Part part = PART_TRAIN) {
        return data_read(&data, Spec(table, schema, options).c_str(), part, &inputs);
    }
    void ExpectTableError(const std::string &table, const std::string &wanted) {
        ExpectFailure([&] { return Read(table, kSchema); }, folder + "/table.csv" + wanted);
    }
    void ExpectSchemaError(const std::string &schema, const std::string &wanted) {
        ExpectFailure([&] { return Read(kTable, schema); }, folder + "/schema" + wanted);
    }
    // One input, which all columns of a table of numbers feed as they are.
    std::vector<float> Numbers(const std::string &table, int64_t columns, const std::string &options = "") {
        inputs.count = inputs.model_inputs = 1;
        inputs.train_inputs = 0;
        inputs.input[0] = Input("numbers", AMP_DT_F32, {columns});
        std::string schema = "amp csv 1\nheld 0\n" + options;
        for (int64_t c = 0; c < columns; c++)
            schema += "number " + std::string(1, static_cast<char>('a' + c)) + " raw\n";
        EXPECT_EQ(Read(table, schema), 0) << table;
        std::vector<float> out = data.columns ? Values<float>(0) : std::vector<float>();
        data_close(&data);
        return out;
    }
};

// (v - mean) / std of the three ages that are there; a missing one is the mean.
TEST_F(CsvTest, NumbersAndCategories) {
    ASSERT_EQ(Read(kTable, kSchema), 0);
    EXPECT_EQ(data.count, 4);
    EXPECT_FALSE(data.has_test);
    const double std = std::sqrt(800.0 / 3);
    const std::vector<float> wanted = {static_cast<float>(-20 / std), 1, 0, 2, 0, 3, static_cast<float>(20 / std), 6};
    EXPECT_EQ(Values<float>(0), wanted);
    EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{2, 1, 2, 0})) << "0 missing, 1 clerk, 2 cook";
    EXPECT_EQ(Values<int32_t>(2), (std::vector<int32_t>{0, 1, 0, 1})) << "no, yes";
}

TEST_F(CsvTest, ASchemaIsInferred) {
    ASSERT_EQ(Read(kTable, "", ",target=bought,held=0"), 0);
    EXPECT_EQ(Values<int32_t>(2), (std::vector<int32_t>{0, 1, 0, 1}));
    const std::string text = data_schema(&data);
    EXPECT_NE(text.find("\nnumber age mean 40.0 std 16.3299"), std::string::npos) << text;
    EXPECT_NE(text.find("\ncategory job values clerk cook\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\ncategory bought target values no yes\n"), std::string::npos) << text;
    data_close(&data);
    ExpectFailure([&] { return Read(kTable, ""); }, "which column is the target?  Name it (csv:");
    ExpectFailure([&] { return Read(kTable, "", ",target=sold"); }, "has no column 'sold', which target= names");
    inputs.input[2].name = "bought";
    ASSERT_EQ(Read(kTable, ""), 1) << "a tenth of four rows is none";
    data_close(&data);
    ASSERT_EQ(Read(kTable, "", ",held=0.25"), 0) << "the input's name says it";
}

TEST_F(CsvTest, WhatIsInferredOfColumns) {
    inputs.count = 3;
    inputs.input[1] = Input("categories", AMP_DT_I32, {1});
    std::string table = "id;n;mostly;word;empty;y\n";
    for (int i = 0; i < 60; i++)
        table += "row " + std::to_string(i) + ";" + std::to_string(i) + ".5;" + std::to_string(i) + ";" +
                 (i % 2 ? "a" : "b") + ";;" + std::to_string(i % 3) + "\n";
    ASSERT_EQ(Read(table, "", ",target=y,held=0"), 0);
    const std::string text = data_schema(&data);
    for (const char *line :
         {"\ndelimiter \";\"\n", "\nignore id because ", "\nnumber n mean", "\nnumber mostly mean",
          "\ncategory word values a b\n", "\nignore empty because ", "\ncategory y target values 0 1 2\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    data_close(&data);
    inputs.input[2] = Input("class", AMP_DT_F32, {});
    ASSERT_EQ(Read(table, "", ",target=y,held=0"), 0);
    EXPECT_EQ(Values<float>(2)[2], 2) << "a number is fed as it is";
    data_close(&data);
    const size_t at = table.find("\nrow 7;7.5;") + 11;
    ExpectFailure([&] { return Read(std::string(table).insert(at, "o"), "", ",target=y,held=0"); },
                  "table.csv:9: column 3 (mostly): 'o7' is not a number");
}

// Of 40 cells each: what is not used, or not as a number, says why.
TEST_F(CsvTest, WhatIsNotUsedSaysWhy) {
    const struct {
        const char *cell; // with # for a number that differs from row to row
        const char *kind, *because;
    } cases[] = {
        {"12,#", "ignore", "look like numbers with a decimal comma, such as '12,2' in line 2: write `decimal ,` and"},
        {"-,#", "ignore", "look like numbers with a decimal comma"},
        {"1,1##", "ignore",
         "look like numbers with separated thousands, such as '1,122' in line 2: write them without"},
        {"1.234.5##,75", "ignore", "look like numbers with separated thousands"},
        {"1 0##", "ignore", "look like numbers with separated thousands"},
        {"1'0##", "ignore", "look like numbers with separated thousands"},
        {"1\xc2\xa0"
         "0##",
         "ignore", "look like numbers with separated thousands"},
        {"1\xe2\x80\xaf"
         "0##,5",
         "ignore", "look like numbers with separated thousands"},
        {"#%", "ignore", "look like percentages, such as '2%' in line 2: write the number alone in each cell"},
        {"2,# %", "ignore", "look like percentages"},
        {"$#", "ignore", "look like amounts of money"},
        {"-$#,000.50", "ignore", "look like amounts of money"},
        {"# EUR", "ignore", "look like amounts of money"},
        {"\xe2\x82\xac #", "ignore", "look like amounts of money"},
        {"(#)", "ignore", "look like amounts of money"},
        {"20##-01-31", "ignore", "look like dates, such as '2022-01-31' in line 2: write what counts of them"},
        {"2024-01-31T12:30:##Z", "ignore", "look like dates"},
        {"2024-01-31 12:30:00.##", "ignore", "look like dates"},
        {"31.1.20##", "ignore", "look like dates"},
        {"1/31/20##", "ignore", "look like dates"},
        {"31 Jan 20##", "ignore", "look like dates"},
        {"Mon, January 31, 20##", "ignore", "look like dates"},
        {"12:##", "ignore", "look like times, such as '12:22' in line 2: write them as numbers, such as"},
        {"12:30:00.##", "ignore", "look like times"},
        {"7:## pm", "ignore", "look like times"},
        {"0xf#", "ignore", "look like hexadecimal numbers, such as '0xf2' in line 2: write them as decimal numbers"},
        {"00ff##", "ignore", "look like hexadecimal numbers"},
        {"# kg", "ignore", "look like numbers with a unit, such as '2 kg' in line 2: write the number alone"},
        {"#.5cm", "ignore", "look like numbers with a unit"},
        {"#\xc2\xb0"
         "C",
         "ignore", "look like numbers with a unit"},
        {"#-99", "ignore", "look like several numbers in a cell"},
        {"[#, 1]", "ignore", "look like several numbers in a cell"},
        {"\xe2\x88\x92#", "ignore", "look like numbers in other characters"},
        {"#e400", "ignore", "look like numbers above 1.8e308"},
        {"Ann ##", "ignore", "its first 40 cells are 40 different texts, such as 'Ann 22' in line 2: `category`"},
        {"Ann\n##\x7f", "ignore", "such as 'Ann 22 ' in line 2"},
        {"a text of thirty-two bytes is ##", "ignore", "such as 'a text of thirty-two bytes is 22' in line 2"},
        {"a text that is somewhat longer ##", "ignore", "such as 'a text that is somewhat longer 2...' in line 2"},
        {"", "ignore", "all its cells are missing, such as '' in line 2"},
        {"NA", "ignore", "all its cells are missing, such as 'NA' in line 2"},
        {"%5%", "category", "look like percentages, such as '2%' in line 2"},
        {"%5 apples", "category", "look like numbers with a unit"},
        {"%5-9", "category", nullptr},
        {"class %5", "category", nullptr},
        {"#", "number", nullptr},
    };
    inputs.options.all = true;
    for (const auto &c : cases) {
        std::string table = "v;y\n";
        for (int i = 0; i < 40; i++) {
            std::string cell = c.cell;
            for (size_t at; (at = cell.find("##")) != std::string::npos;) cell.replace(at, 2, std::to_string(22 + i));
            for (size_t at; (at = cell.find('#')) != std::string::npos;) cell.replace(at, 1, std::to_string(2 + i));
            if ((cell.rfind("%5", 0)) == 0) cell.replace(0, 2, std::to_string(2 + i % 5));
            table += "\"" + cell + "\";" + (i % 2 ? "a" : "b") + "\n";
        }
        const std::string spec = "csv:" + Write("table.csv", table);
        CsvSource csv = {};
        int rows, held;
        ASSERT_EQ(csv_describe(&csv, spec.c_str(), &rows, &held), 0) << c.cell;
        const CsvColumn &column = csv.schema.columns.data[0];
        EXPECT_EQ(strncmp(strstr(csv.text, " v") - strlen(c.kind), c.kind, strlen(c.kind)), 0) << csv.text;
        EXPECT_EQ(column.because == nullptr, c.because == nullptr) << csv.text;
        const std::string because = column.because ? column.because : "";
        EXPECT_NE(because.find(c.because ? c.because : ""), std::string::npos) << because;
        arena_free(&csv.arena);
    }
}

// Mostly numbers, but for a few cells: nine in ten make it a number, and then the cell is an error.
TEST_F(CsvTest, AFewCellsAreNoNumbers) {
    inputs.count = inputs.model_inputs = 1;
    inputs.train_inputs = 0;
    inputs.input[0] = Input("numbers", AMP_DT_F32, {1});
    inputs.options.tells = true;
    const auto table = [](int words, const std::string &word) {
        std::string out = "v\n";
        for (int i = 0; i < 40; i++) out += i >= 40 - words ? word + "\n" : std::to_string(i) + "\n";
        return out;
    };
    ExpectFailure([&] { return Read(table(4, "12 kg"), ""); },
                  "table.csv:38: column 1 (v): '12 kg' is not a number; correct it (of numbers with a unit: write the "
                  "number alone in each cell, and `number` in the schema), or, if it marks a missing value, add it "
                  "to the schema's line `missing`");
    testing::internal::CaptureStderr();
    EXPECT_EQ(Read(table(5, "none"), ""), 1);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("table.csv: column 'v' is not used: 5 of its 40 cells are not numbers, such as 'none' in line "
                        "37: correct them, or add them to the line `missing`, and write `number` in the schema\n"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("table.csv: to change that, keep what amprun schema csv:"), std::string::npos) << said;
    EXPECT_NE(said.find("takes 1 numbers per sample, and 0 come from the columns"), std::string::npos) << said;
}

// Training says it, and so does who takes what training has derived; a schema that somebody wrote is not questioned.
TEST_F(CsvTest, WhoIsTold) {
    inputs.count = inputs.model_inputs = 1;
    inputs.train_inputs = 0;
    inputs.input[0] = Input("n", AMP_DT_F32, {1});
    std::string table = "n";
    for (int c = 0; c < 12; c++) table += ",c" + std::to_string(c);
    for (int i = 0; i < 40; i++) {
        table += "\n" + std::to_string(i);
        for (int c = 0; c < 12; c++) table += ",\"" + std::to_string(i) + ",5\"";
    }
    const auto said = [&](const std::string &schema, Part part) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(Read(table, schema, ",held=0", part), 0);
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(said("", PART_TRAIN), "") << "only who asks is told";
    const std::string kept = data_schema(&data);
    data_close(&data);
    inputs.options.tells = true;
    std::string text = said("", PART_TRAIN);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12) << text;
    EXPECT_NE(text.find("column 'c9' is not used: its 40 cells that are not numbers look like numbers with a decimal "
                        "comma, such as '0,5' in line 2: "),
              std::string::npos);
    EXPECT_NE(text.find("table.csv: the same holds for 2 more columns; amprun schema prints all of them\n"),
              std::string::npos);
    data_close(&data);
    text = said(kept, PART_TEST);
    EXPECT_NE(text.find("column 'c0' is not used, as in training: its 40 cells"), std::string::npos) << text;
    data_close(&data);
    std::string mine = "amp csv 1\nnumber n mean 0 std 1\n";
    for (int c = 0; c < 12; c++) mine += "ignore c" + std::to_string(c) + "\n";
    EXPECT_EQ(said(mine, PART_TRAIN), "");
}

TEST_F(CsvTest, DecimalComma) {
    const std::vector<float> wanted = {-1.5f, 2, 0.5f, 400};
    EXPECT_EQ(Numbers("a;b\n-1,5;2\n,5;4,0e2\n", 2, "delimiter \";\"\ndecimal \",\"\n"), wanted);
    EXPECT_EQ(Numbers("a;b\n-1,5;2\n,5;4,0e2\n", 2, "delimiter ;\ndecimal ,\n"), wanted) << "no quotes are needed";
    EXPECT_EQ(Numbers("a,b\n\"-1,5\",2\n\",5\",400\n", 2, "decimal \",\"\n"), wanted);
    EXPECT_EQ(Numbers("a,b\n-1.5,2\n.5,4.0e2\n", 2, "decimal \".\"\n"), wanted);
    inputs.options.all = true;
    inputs.input[0] = Input("numbers", AMP_DT_F32, {1});
    const std::string schema = "amp csv 1\ndelimiter \";\"\ndecimal \",\"\nnumber a\n";
    ASSERT_EQ(Read("a\n1,5\n2,5\n", schema), 0);
    const std::string kept = data_schema(&data);
    EXPECT_NE(kept.find("\ndecimal \",\"\nmissing"), std::string::npos) << kept;
    EXPECT_NE(kept.find("\nnumber a mean 2.0 std 0.5\n"), std::string::npos) << "a schema's own numbers have a point";
    data_close(&data);
    ASSERT_EQ(Read("a\n3\n", kept), 0) << "what it writes it reads";
    EXPECT_EQ(Values<float>(0), (std::vector<float>{2}));
    data_close(&data);
    ExpectFailure([&] { return Read("a\n1,5\n2.5\n", schema); },
                  "table.csv:3: column 1 (a): '2.5' is not a number with the schema's `decimal \",\"`; correct it");
    ExpectFailure([&] { return Read("a\n1,5,5\n", schema); }, "table.csv:2: column 1 (a): '1,5,5' is not a number");
    ExpectFailure([&] { return Read("a\n" + std::string(2000, ',') + "\n", schema); }, "is not a number");
    ExpectFailure([&] { return Read("1,5\n1\n", schema); }, "table.csv:1: column 1: '1,5' is not a name");
}

// The same mapping for other rows: evaluation and inference of another file take all of it.
TEST_F(CsvTest, WhatWasDerivedIsKept) {
    ASSERT_EQ(Read(kTable, kSchema), 0);
    const std::string schema = data_schema(&data);
    data_close(&data);
    inputs.options.schema = schema.c_str();
    inputs.options.schema_name = "kept";
    ASSERT_EQ(Read("age,job,pay,bought\n40,cook,7,yes\n", "", "", PART_TEST), 0);
    EXPECT_EQ(Values<float>(0), (std::vector<float>{0, 7}));
    EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{2}));
    EXPECT_EQ(Values<int32_t>(2), (std::vector<int32_t>{1}));
    data_close(&data);
    inputs.count = 2;
    inputs.options.all = true;
    ASSERT_EQ(Read("pay,age,job\n7,40,cook\n", "", "", PART_TEST), 0) << "no target is needed, and no order";
    EXPECT_EQ(Values<float>(0), (std::vector<float>{0, 7}));
    data_close(&data);
    inputs.options = {};
    ExpectFailure([&] { return Read(kTable, "", "", PART_TEST); }, "needs the schema fitted in training");
    ExpectFailure([&] { return Read(kTable, kSchema, "", PART_TEST); }, "has no values fitted for the column 'age'");
    ASSERT_EQ(Read(kTable, schema, "", PART_TEST), 0) << "a schema in a file does";
}

TEST_F(CsvTest, UnknownCategories) {
    const std::string schema =
        "amp csv 1\nheld 0\nnumber age mean 0 std 1\ncategory job values cook\nnumber pay mean 0 std "
        "1\ncategory bought target values no yes\n";
    ExpectFailure(
        [&] { return Read(kTable, schema); },
        "table.csv:3: column 2 (job): 'clerk' is not one of the 1 values seen in training; correct it, or write "
        "`unknown` in the column's line of the schema: then it counts as missing");
    ASSERT_EQ(Read(kTable, std::string(schema).replace(schema.find("job "), 4, "job unknown ")), 0);
    EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{1, 0, 1, 0}));
    data_close(&data);
    ExpectFailure(
        [&] { return Read("age,job,pay,bought\n1,cook,1,maybe\n", schema); },
        "table.csv:2: column 4 (bought): 'maybe' is not one of the 2 values seen in training; correct it, or leave");
}

// Statistics are of the trained rows, the same ones each time.
TEST_F(CsvTest, HeldOutRowsDecideNothing) {
    std::string table = "age,job,pay,bought\n";
    for (int i = 0; i < 40; i++) table += std::to_string(i) + ",cook," + std::to_string(i) + ",no\n";
    const std::string schema = std::string(kSchema).replace(strlen("amp csv 1\nheld "), 1, "0.25");
    ASSERT_EQ(Read(table, schema), 0);
    EXPECT_EQ(data.count, 30);
    EXPECT_TRUE(data.has_test);
    const std::vector<float> trained = Values<float>(0);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < trained.size(); i += 2) sum += trained[i], squares += trained[i] * trained[i];
    EXPECT_NEAR(sum, 0, 1e-5);
    EXPECT_NEAR(squares / 30, 1, 1e-5);
    const std::string kept = data_schema(&data);
    data_close(&data);
    inputs.options.schema = kept.c_str();
    inputs.options.schema_name = "kept";
    ASSERT_EQ(Read(table, "", "", PART_TEST), 0);
    EXPECT_EQ(data.count, 10);
    std::vector<bool> seen(40);
    for (const std::vector<float> &rows : {trained, Values<float>(0)})
        for (size_t i = 1; i < rows.size(); i += 2) {
            EXPECT_FALSE(seen[static_cast<size_t>(rows[i])]) << "a row is in one part";
            seen[static_cast<size_t>(rows[i])] = true;
        }
    data_close(&data);
    ASSERT_EQ(Read(table + "1,cook,1,no\n", "", "", PART_TEST), 0);
    EXPECT_EQ(data.count, 41) << "nothing was held out of another file";
}

TEST_F(CsvTest, AColumnSaysWhatIsHeldOut) {
    const std::string table = "part,age,job,pay,bought\ntrain,1,a,1,x\ntest,2,a,2,x\ntrain,3,a,3,y\n";
    const std::string schema = std::string(kSchema).replace(strlen("amp csv 1\n"), 6, "held where part is test");
    ASSERT_EQ(Read(table, schema), 0);
    EXPECT_EQ(data.count, 2);
    const std::string kept = data_schema(&data);
    data_close(&data);
    ASSERT_EQ(Read(table, kept, "", PART_TEST), 0);
    EXPECT_EQ(data.count, 1);
    EXPECT_EQ(Values<float>(0)[1], 2);
    data_close(&data);
    ExpectFailure([&] { return Read(kTable, schema); }, "has no column 'part', which says what is held out");
    ExpectFailure([&] { return Read("part,age,job,pay,bought\ntrain,1,a,1,x\n", schema); },
                  "its column 'part' is 'test' in no row");
}

TEST_F(CsvTest, WhatIsHeldOutIsSaidOnce) {
    inputs.options.held = 0.5;
    ExpectFailure([&] { return Read(kTable, kSchema); },
                  "held= (or `held` in its schema) and --eval-split both say what is held out");
    ASSERT_EQ(Read(kTable, "", ",target=bought"), 0);
    EXPECT_EQ(data.count, 2);
    data_close(&data);
    inputs.options = {};
    ExpectFailure([&] { return Read(kTable, "", ",target=bought,held=4"); }, "of its 4 rows 4 would be held out");
    ExpectFailure([&] { return Read(kTable, "", ",target=bought,held=no"); }, "held=no: a part such as 0.1");
}

// RFC 4180, and what spreadsheets write.
TEST_F(CsvTest, Quoting) {
    const std::vector<float> wanted = {1, 2, 3, 4};
    EXPECT_EQ(Numbers("a,b\n1,2\n3,4\n", 2), wanted);
    EXPECT_EQ(Numbers("a,b\r\n1,2\r\n3,4\r\n", 2), wanted);
    EXPECT_EQ(Numbers("a,b\n1,2\n3,4", 2), wanted) << "no end of line at the end";
    EXPECT_EQ(Numbers("\xef\xbb\xbf\"a\",b\n1,2\n3,4\n", 2), wanted) << "a byte order mark";
    EXPECT_EQ(Numbers("a,b\n\"1\",2\n 3 , \"4\" \n\n\r\n", 2), wanted) << "spaces, empty lines";
    EXPECT_EQ(Numbers("a;b\n1;2\n3;4\n", 2, "delimiter \";\"\n"), wanted);
    EXPECT_EQ(Numbers("a\tb\n1\t2\n3\t4\n", 2, "delimiter tab\n"), wanted);
    EXPECT_EQ(Numbers("b,a\n2,1\n4,3\n", 2), wanted) << "columns by their names";
    EXPECT_EQ(Numbers("a,b\n-1e2,+2.5\n.5,4.\n", 2), (std::vector<float>{-100, 2.5f, 0.5f, 4}));
    const std::string schema = "amp csv 1\nheld 0\nignore age\ncategory job\nignore pay\ncategory bought target\n";
    inputs.count = 2;
    inputs.model_inputs = 1;
    inputs.train_inputs = 1;
    inputs.input[0] = Input("job", AMP_DT_I32, {});
    inputs.input[1] = Input("class", AMP_DT_I32, {});
    ASSERT_EQ(Read("age,job,pay,bought\n,\"a,\"\"b\"\"\nc\",,x\n,\xc3\xa4,,y\n", schema), 0);
    EXPECT_NE(strstr(data_schema(&data), "category job values \"a,\"\"b\"\"\nc\" \"\xc3\xa4\"\n"), nullptr)
        << data_schema(&data);
    const std::string kept = data_schema(&data);
    data_close(&data);
    ASSERT_EQ(Read("age,job,pay,bought\n,\"a,\"\"b\"\"\nc\",,x\n,\xc3\xa4,,y\n", kept), 0) << "what it writes it reads";
    EXPECT_EQ(Values<int32_t>(0), (std::vector<int32_t>{1, 2}));
}

TEST_F(CsvTest, TablesThatAreWrong) {
    const std::string head = "age,job,pay,bought\n", row = "20,cook,1,no\n";
    ExpectTableError("", ": is empty; the first line names the columns");
    ExpectTableError("\n\n", ": is empty");
    ExpectTableError(head, ": has no rows after its first line");
    ExpectTableError(head + row + "1,2,3\n", ":3: has 3 cells, and the first line 4 names; a cell with the delimiter");
    ExpectTableError(head + row + "1,2,3,4,5\n", ":3: has 5 cells");
    ExpectTableError(head + "20,\"co\nok\",1,no\nx,cook,1,no\n",
                     ":4: column 1 (age): 'x' is not a number; correct it, or");
    ExpectTableError(head + "20,cook,inf,no\n", ":2: column 3 (pay): 'inf' is not a number");
    ExpectTableError(head + "20,cook,1e999,no\n", ":2: column 3 (pay): '1e999' is not a number");
    ExpectTableError(head + "\"1,234\",cook,1,no\n", ":2: column 1 (age): '1,234' is not a number");
    ExpectTableError(head + "0x10,cook,1,no\n", ":2: column 1 (age): '0x10' is not a number");
    ExpectTableError(head + row + "20,cook,1,\n", ":3: column 4 (bought): the target is missing; leave the row out");
    ExpectTableError(head + row + "20,\"cook,1,no\n", ":3: cell 2: its quote is not closed");
    ExpectTableError(head + "20,\"co\"ok,1,no\n", ":2: cell 2: something follows its closing quote");
    ExpectTableError(head + "20,co\"ok,1,no\n", ":2: cell 2: a quote in a cell without quotes");
    ExpectTableError(head + "20,co\rok,1,no\n", ":2: cell 2: a carriage return in a cell without quotes");
    ExpectTableError(head + "20,co\xe9k,1,no\n", ":2: byte 0xe9 is no UTF-8 text; convert the file (iconv");
    ExpectTableError(head + std::string("20,co\0k,1,no\n", 13), ":2: byte 0x00 is no UTF-8 text");
    ExpectTableError("\xff\xfe"
                     "a\0b\0",
                     ": is UTF-16; save it as UTF-8");
    ExpectTableError("\x1f\x8b\x08", ": is compressed; unpack it first");
    ExpectTableError(row, ":1: column 1: '20' is not a name; the first line names the columns");
    ExpectTableError("age,job,pay,\n" + row, ":1: column 4: '' is not a name");
    ExpectTableError("age,job,age,bought\n" + row, ":1: columns 1 and 3 are both called 'age'");
    ExpectTableError("age,job,bought\n1,a,x\n",
                     ": has no column 'pay', which the schema names; its columns are age, job");
    ExpectTableError("age,job,pay,bought,more\n1,a,2,x,3\n", ": column 'more' is not in the schema; a line `ignore");
    ExpectTableError(head + ",cook,1,no\n,cook,2,yes\n", ": column 1 (age) has no number in the rows that are trained");
    ExpectTableError(head + "1,,1,no\n2,,2,yes\n", ": column 2 (job) has no value in the rows that are trained");
}

TEST_F(CsvTest, FilesThatAreNone) {
    const auto read = [&](const std::string &spec) {
        return [this, spec] { return data_read(&data, spec.c_str(), PART_TRAIN, &inputs); };
    };
    const std::string schema = ",schema=" + Write("schema", kSchema);
    ExpectFailure(read("csv:" + folder + schema), folder + ": cannot read: Is a directory");
    ExpectFailure(read("csv:" + folder + "/none" + schema), folder + "/none: cannot open: No such file");
    ExpectFailure(read("csv:" + Write("t", kTable) + ",schema=" + folder + "/none"),
                  "/none: cannot open: No such file");
    ExpectFailure(read("csv:" + Write("t", kTable) + ",schema=" + folder), ": Is a directory");
    ExpectFailure(read("csv:" + Write("t", kTable) + schema + ",target=x"), "schema= and target= are both given");
    ExpectFailure(read("csv:" + Write("t", kTable) + ",mode=x"), "there is no option mode; there are schema=, target=");
    if (!geteuid()) return; /* may read everything */
    const std::string secret = Write("secret", kTable);
    ASSERT_EQ(chmod(secret.c_str(), 0), 0);
    ExpectFailure(read("csv:" + secret + schema), secret + ": cannot open: Permission denied");
}

// Training reads a file twice where rows are held out; a pipe gives its rows once.
TEST_F(CsvTest, APipeIsReadOnceOrRefused) {
    alarm(20);
    const std::string pipe = Path("pipe"), spec = "csv:" + pipe + ",schema=" + Write("schema", kSchema);
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    ExpectFailure([&] { return data_read(&data, (spec + ",held=0.5").c_str(), PART_TRAIN, &inputs); },
                  pipe + ": is a pipe; only a regular file is read here: copy what it gives to one");
    for (const char *held : {",held=0", ",held=0.5"}) {
        inputs.options.whole = strchr(held, '.'); // by --eval-data: the rows that are held out are not read
        std::thread writer([&] { std::ofstream(pipe) << kTable; });
        EXPECT_EQ(data_read(&data, (spec + held).c_str(), PART_TRAIN, &inputs), 0);
        writer.join();
        data_close(&data);
    }
    alarm(0);
}

TEST_F(CsvTest, SchemasThatAreWrong) {
    const std::string head = "amp csv 1\n";
    ExpectSchemaError("\n", ": is not a schema: it does not begin with amp csv 1");
    ExpectSchemaError(kTable, ": is not a schema");
    ExpectSchemaError(std::string("amp csv 1\nnumber a\0b\n", 21), ": is not a schema: it contains a zero byte");
    ExpectSchemaError("amp csv 2\n", ": is a schema of version 2; this amprun reads version 1");
    ExpectSchemaError(head, ": the schema declares no columns");
    ExpectSchemaError(head + "text age\n", ":2: 'text': a line begins with number, category, ignore");
    ExpectSchemaError(head + "\n# none\nnumber\n", ":4: the name of a column is missing");
    ExpectSchemaError(head + "number age\nignore age\n", ":3: the column 'age' is declared twice");
    ExpectSchemaError(head + "number age values a\n", ":2: 'values' does not apply to number columns");
    ExpectSchemaError(head + "category job raw\n", ":2: 'raw' does not apply to category columns");
    ExpectSchemaError(head + "ignore job target\n", ":2: 'target' does not apply to ignore columns");
    ExpectSchemaError(head + "number age mean x\n", ":2: mean takes a number, not 'x'");
    ExpectSchemaError(head + "number age mean 1 std 0\n", ":2: std must be above 0");
    ExpectSchemaError(head + "category job values\n", ":2: values takes at least one value");
    ExpectSchemaError(head + "category job values a b a\n", ":2: the value 'a' is listed twice");
    ExpectSchemaError(head + "held 1.5\n", ":2: held takes a part such as 0.1");
    ExpectSchemaError(head + "held 0.5 0.5\n", ":2: unexpected word '0.5' at the end of the line");
    ExpectSchemaError(head + "delimiter ab\n", ":2: delimiter takes one character");
    ExpectSchemaError(head + "decimal x\n", ":2: decimal takes \",\" or \".\"");
    ExpectSchemaError(head + "decimal\n", ":2: decimal takes");
    ExpectSchemaError(head + "ignore age because\n", ":2: because takes a reason in quotes");
    ExpectSchemaError(head + "number \"age\n", ":2: a quote is not closed");
}

TEST_F(CsvTest, SchemasThatDoNotFitTheModel) {
    const std::string head = "amp csv 1\nheld 0\n";
    const auto expect = [&](const std::string &schema, const std::string &wanted) {
        ExpectFailure([&] { return Read(kTable, head + schema); }, wanted);
    };
    expect("number age\ncategory job\nignore pay\ncategory bought target\n",
           "the model's input numbers takes 2 numbers per sample, and 1 come from the columns: age; change the model");
    expect("number age\ncategory job\nnumber pay indicator\ncategory bought target\n",
           "and 3 come from the columns: age, pay, pay (missing)");
    expect("number age\ncategory job\nnumber pay\ncategory bought\n",
           "the model's input categories takes 1 numbers per sample, and 2 come from the columns: job, bought");
    expect("number age input years\ncategory job\nnumber pay\ncategory bought target\n",
           "feeds the column 'age' to the input 'years', which buyers does not have");
    inputs.bound[1] = 2;
    expect(
        "number age\ncategory job\nnumber pay\ncategory bought target\n",
        "column 2 (job) has 3 ids, of which 0 means missing, but the model's input categories takes ids from 0 to 1");
    inputs.bound[1] = 0;
    inputs.input[1] = Input("more", AMP_DT_F32, {2});
    expect("number age\nignore job\nnumber pay\ncategory bought target\n",
           "the column 'age' would feed 2 inputs of buyers; say which in the schema (`input NAME`)");
    inputs.input[1] = Input("age", AMP_DT_I32, {});
    inputs.input[0] = Input("numbers", AMP_DT_F32, {1});
    expect("number age\nignore job\nnumber pay\ncategory bought target\n",
           "does not fit the model's input age, which is i32; `raw` feeds a number as it is");
    expect("number age\ncategory job\nnumber pay\ncategory bought target\n",
           "the column 'job', a category, feeds no input of buyers; say which in the schema (`input NAME`), or leave "
           "it out");
}

TEST_F(CsvTest, InputsByNameAndMissingOnes) {
    inputs.count = inputs.model_inputs = 3;
    inputs.train_inputs = 0;
    inputs.input[0] = Input("pay", AMP_DT_F32, {});
    inputs.input[1] = Input("rest", AMP_DT_F32, {2});
    inputs.input[2] = Input("missing", AMP_DT_F32, {2});
    const std::string without =
        "amp csv 1\nheld 0\nnumber age raw indicator\nignore job\nnumber pay raw\nignore bought\n";
    ASSERT_EQ(Read(kTable, without), 0);
    EXPECT_EQ(Values<float>(0), (std::vector<float>{1, 2, 3, 6}));
    EXPECT_EQ(Values<float>(1), (std::vector<float>{20, 0, 40, 0, 40, 1, 60, 0}));
    EXPECT_EQ(Values<float>(2), (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0}));
    data_close(&data);
    inputs.input[2] = Input("age_missing", AMP_DT_F32, {1});
    ASSERT_EQ(Read(kTable, without), 0);
    EXPECT_EQ(Values<float>(2), (std::vector<float>{0, 0, 1, 0}));
}

// Means and deviations of numbers whose sums or squares have no double, and of their like that are small.
TEST_F(CsvTest, NumbersOfAnySize) {
    inputs.count = inputs.model_inputs = 1;
    inputs.train_inputs = 0;
    inputs.input[0] = Input("x", AMP_DT_F32, {1});
    inputs.options.all = true;
    const auto expect = [&](const std::vector<std::string> &cells, const std::vector<float> &wanted) {
        std::string table = "a\n";
        for (const std::string &cell : cells) table += cell + "\n";
        ASSERT_EQ(Read(table, ""), 0) << cells[0];
        EXPECT_EQ(Values<float>(0).size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); i++) EXPECT_NEAR(Values<float>(0)[i], wanted[i], 1e-6) << cells[i];
        const std::string kept = data_schema(&data);
        data_close(&data);
        ASSERT_EQ(Read(table, kept, "", PART_TEST), 0) << "what it writes it reads: " << kept;
        for (size_t i = 0; i < wanted.size(); i++) EXPECT_NEAR(Values<float>(0)[i], wanted[i], 1e-6) << cells[i];
        data_close(&data);
    };
    expect({"1e308", "1e308", "1.5e308", "0.5e308"}, {0, 0, std::sqrt(2.0f), -std::sqrt(2.0f)});
    expect({"-1.7e308", "1.7e308"}, {-1, 1});
    expect({"-1.7e308", "-1.7e308", "-1.7e308", "1.7e308"},
           {-1 / std::sqrt(3.0f), -1 / std::sqrt(3.0f), -1 / std::sqrt(3.0f), std::sqrt(3.0f)});
    expect({"1e200", "3e200"}, {-1, 1});
    expect({"1e-200", "3e-200"}, {-1, 1});
    expect({"1e-310", "3e-310"}, {-1, 1});
    expect({"1e308", "1e308"}, {0, 0});
    expect({"0", "0"}, {0, 0});
    expect({"1e-320", "1e308"}, {-1, 1});
}

// What the model's input cannot hold is an error with its place, not an infinity.
TEST_F(CsvTest, NumbersThatDoNotFit) {
    inputs.count = inputs.model_inputs = 1;
    inputs.train_inputs = 0;
    inputs.options.all = true;
    const auto expect = [&](amp_dtype dtype, const std::string &cell, const std::string &wanted) {
        inputs.input[0] = Input("x", dtype, {1});
        ExpectFailure([&] { return Read("a\n1\n-" + cell + "\n", "amp csv 1\nnumber a raw\n"); },
                      "table.csv:3: column 1 (a): -" + wanted);
    };
    expect(AMP_DT_F32, "1e308", "1e+308 does not fit the model's input x, which is f32");
    expect(AMP_DT_F32, "3.41e38", "3.41e+38 does not fit the model's input x, which is f32");
    expect(AMP_DT_F16, "65520", "65520 does not fit the model's input x, which is f16");
    expect(AMP_DT_F16, "1e39", "1e+39 does not fit the model's input x, which is f16");
    expect(AMP_DT_BF16, "3.4e38", "3.4e+38 does not fit the model's input x, which is bf16");
    inputs.input[0] = Input("x", AMP_DT_F32, {1});
    ExpectFailure([&] { return Read("a\n1e308\n", "amp csv 1\nnumber a mean 0 std 1e-300\n"); },
                  "table.csv:2: column 1 (a): inf does not fit the model's input x, which is f32");
    ASSERT_EQ(Read("a\n3.4e38\n", "amp csv 1\nnumber a raw\n"), 0);
    EXPECT_EQ(Values<float>(0)[0], 3.4e38f);
}

// Inferred, as numbers by a schema, and left out by one: the time grows with the number of columns.
TEST_F(CsvTest, ManyColumns) {
    inputs.count = inputs.model_inputs = 1;
    inputs.train_inputs = 0;
    const auto seconds = [&](int columns) {
        const auto repeated = [&](const std::string &before, const std::string &after) {
            std::string text;
            for (int c = 0; c < columns; c++) text += before + std::to_string(c) + after;
            return text;
        };
        const std::string row = repeated("", ",") + "1\n", head = repeated("c", ",") + "last\n";
        const std::string table = head + row + row, words = "missing " + repeated("m", " ") + "\n";
        const clock_t begin = clock();
        inputs.input[0] = Input("numbers", AMP_DT_F32, {columns + 1});
        EXPECT_EQ(Read(table, "", ",held=0"), 0);
        data_close(&data);
        EXPECT_EQ(Read(table, "amp csv 1\n" + words + repeated("number c", "\n") + "number last\n", ",held=0"), 0);
        data_close(&data);
        inputs.input[0] = Input("last", AMP_DT_F32, {1});
        EXPECT_EQ(Read(table, "amp csv 1\n" + repeated("ignore c", "\n") + "number last\n", ",held=0"), 0);
        data_close(&data);
        return static_cast<double>(clock() - begin) / CLOCKS_PER_SEC;
    };
    const double few = std::min({seconds(1000), seconds(1000), seconds(1000)});
    EXPECT_LT(seconds(16000), 16 * 4 * few) << "16 times as many";
}

TEST_F(CsvTest, ErrorsNameTheLine) {
    ASSERT_EQ(Read(kTable, kSchema), 0);
    amp_error err = {};
    snprintf(err.message, sizeof err.message, "input class, sample 1: index 9");
    const int64_t index[] = {0, 3};
    testing::internal::CaptureStderr();
    EXPECT_EQ(data_report(&data, index, 2, &err), 1);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("input class, line 5: index 9\n"), std::string::npos);
}

} // namespace
