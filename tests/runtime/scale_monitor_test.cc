// The monitor of the loss scale, against a scaler that is written out here: what is said of trainings whose gradients
// overflow above a ceiling that the test moves.
#include <limits>

#include "tests/runtime/tiny.h"

namespace {

// GradScaler with a floor (docs/language.md, "Precision"); gradients overflow where the scale is above |ceiling|.
class Simulation {
  public:
    explicit Simulation(const char *scaler) {
        amp_model_desc desc = *amp_model_query();
        desc.scaler = scaler;
        amp_error err = {};
        EXPECT_EQ(amp_model_from_desc(&desc, "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        amp_scale_monitor_start(&monitor, model);
    }
    ~Simulation() { amp_model_release(model); }

    // What the monitor says after |steps| steps.
    amp_scale_health Run(int64_t steps, double ceiling) {
        for (int64_t i = 0; i < steps; i++) {
            amp_step_report report = {};
            report.scale = static_cast<float>(scale);
            report.skipped = scale > ceiling;
            report.complete = 1;
            if (report.skipped) {
                at_floor |= scale <= min;
                scale = std::max(scale * backoff, min);
                tracker = 0;
            } else if (++tracker == interval) {
                scale = std::min(scale * growth, max);
                tracker = 0;
            }
            report.at_floor = at_floor;
            const amp_scale_health before = monitor.health;
            const bool changed = amp_scale_monitor_step(&monitor, &report);
            EXPECT_EQ(changed, monitor.health != before);
        }
        return monitor.health;
    }

    double scale = 65536, growth = 2, backoff = 0.5, min = 1, max = 16777216;
    int64_t interval = 100, tracker = 0;
    bool at_floor = false;
    amp_model *model = nullptr;
    amp_scale_monitor monitor;
};

const char *const USUAL =
    "dynamic(init = 65536.0, growth = 2.0, backoff = 0.5, interval = 100, min = 1.0, max = 16777216.0)";
const double NEVER = std::numeric_limits<double>::infinity();

TEST(ScaleMonitor, TakesItsThresholdsFromTheModel) {
    Simulation usual(USUAL);
    EXPECT_EQ(usual.monitor.growth, 2);
    EXPECT_EQ(usual.monitor.backoff, 0.5);
    EXPECT_EQ(usual.monitor.interval, 100);
    EXPECT_EQ(usual.monitor.falling_after, 2) << "two halvings take back two doublings";
    EXPECT_EQ(usual.monitor.stalled_after, 16) << "sixteen halvings are 2^-16";
    Simulation slow(
        "dynamic(init = 8.0, growth = 4.0, backoff = 0.70710678118654752, interval = 7, min = 1.0, max = 8.0)");
    EXPECT_EQ(slow.monitor.falling_after, 8);
    EXPECT_EQ(slow.monitor.stalled_after, 32);
    EXPECT_EQ(slow.monitor.health, AMP_SCALE_SETTLING);
}

TEST(ScaleMonitor, CallsTheSearchForAScaleSettling) {
    Simulation s(USUAL);
    EXPECT_EQ(s.Run(12, 64), AMP_SCALE_SETTLING); // ten halvings at once
    EXPECT_EQ(s.monitor.skipped, 10);
    EXPECT_EQ(s.monitor.skipped_in_a_row, 0);
    EXPECT_EQ(s.monitor.since_overflow, 2);
    EXPECT_EQ(s.monitor.between_overflows, 1);
    EXPECT_EQ(s.Run(98, 64), AMP_SCALE_STEADY) << "no overflow for as long as it takes to grow";
    EXPECT_EQ(s.Run(1, 64), AMP_SCALE_CEILING) << "it grew to 128, which is too large";
    EXPECT_EQ(s.monitor.growths, 1);
    EXPECT_EQ(s.monitor.lowest, 64);
    EXPECT_EQ(s.monitor.highest, 65536);
}

TEST(ScaleMonitor, CallsGrowthSteadyAndItsEndTheCeiling) {
    Simulation s(USUAL);
    EXPECT_EQ(s.Run(101, NEVER), AMP_SCALE_STEADY);
    EXPECT_EQ(s.Run(5000, NEVER), AMP_SCALE_STEADY) << "at its largest";
    EXPECT_EQ(s.monitor.scale, 16777216);
    EXPECT_EQ(s.monitor.since_overflow, -1);
    EXPECT_EQ(s.Run(1, 4194304), AMP_SCALE_CEILING);
    EXPECT_EQ(s.Run(300, 8388608), AMP_SCALE_CEILING) << "up and down around one scale";
    EXPECT_EQ(s.Run(30, 4194304), AMP_SCALE_CEILING) << "the ceiling came down by one halving";
}

TEST(ScaleMonitor, ForgetsOverflowsWhereTheScaleCannotGrow) {
    Simulation s("dynamic(init = 4.0, growth = 2.0, backoff = 0.5, interval = 100, min = 1.0, max = 4.0)");
    s.scale = s.max = 4;
    EXPECT_EQ(s.Run(150, NEVER), AMP_SCALE_STEADY);
    EXPECT_EQ(s.Run(1, 2), AMP_SCALE_CEILING);
    EXPECT_EQ(s.Run(101, NEVER), AMP_SCALE_STEADY);
}

TEST(ScaleMonitor, SeesAScaleThatFalls) {
    Simulation s(USUAL);
    s.Run(300, NEVER);
    double ceiling = s.scale;
    amp_scale_health seen[4];
    for (amp_scale_health &health : seen) { // less room every 50 steps: it never comes to grow
        ceiling /= 2;
        health = s.Run(50, ceiling);
    }
    EXPECT_EQ(seen[0], AMP_SCALE_CEILING);
    EXPECT_EQ(seen[1], AMP_SCALE_CEILING);
    EXPECT_EQ(seen[2], AMP_SCALE_FALLING);
    EXPECT_EQ(seen[3], AMP_SCALE_FALLING);
    EXPECT_EQ(s.monitor.between_overflows, 50);
    EXPECT_EQ(s.monitor.falls, 4);
    EXPECT_EQ(s.Run(101, ceiling), AMP_SCALE_CEILING) << "it grew again, and that was too much";
}

TEST(ScaleMonitor, SeesAScaleThatFallsFromTheStart) {
    Simulation s(USUAL);
    double ceiling = s.scale;
    for (int i = 0; i < 8; i++) s.Run(30, ceiling /= 2);
    EXPECT_EQ(s.monitor.health, AMP_SCALE_FALLING);
}

TEST(ScaleMonitor, SeesThatTheScaleIsNotToBlame) {
    Simulation s(USUAL);
    s.scale = 16777216; // 24 halvings to the floor
    EXPECT_EQ(s.Run(15, 0), AMP_SCALE_SETTLING);
    EXPECT_EQ(s.Run(1, 0), AMP_SCALE_STALLED) << "sixteen halvings in a row did not help";
    EXPECT_FALSE(s.at_floor);
    EXPECT_EQ(s.Run(1, NEVER), AMP_SCALE_SETTLING);
    EXPECT_EQ(s.Run(30, 0), AMP_SCALE_STALLED);
    EXPECT_TRUE(s.at_floor);
    EXPECT_EQ(s.Run(1, NEVER), AMP_SCALE_STALLED) << "the floor is sticky, as the library's is";
}

TEST(ScaleMonitor, KnowsStaticAndNoScales) {
    Simulation fixed("static(1024.0)");
    fixed.scale = fixed.min = fixed.max = 1024;
    EXPECT_EQ(fixed.Run(500, NEVER), AMP_SCALE_STEADY);
    amp_step_report bad = {};
    bad.scale = 1024;
    bad.skipped = bad.complete = 1;
    for (int i = 0; i < 15; i++) amp_scale_monitor_step(&fixed.monitor, &bad);
    EXPECT_EQ(fixed.monitor.health, AMP_SCALE_STEADY);
    EXPECT_EQ(amp_scale_monitor_step(&fixed.monitor, &bad), 1);
    EXPECT_EQ(fixed.monitor.health, AMP_SCALE_STALLED);
    for (const char *none : {static_cast<const char *>(nullptr), "none()"}) {
        Simulation s(none);
        EXPECT_EQ(s.Run(10, 0), AMP_SCALE_UNSCALED);
        EXPECT_EQ(s.monitor.steps, 0);
    }
}

TEST(ScaleMonitor, CountsStepsNotMicroBatches) {
    Simulation s(USUAL);
    amp_step_report micro = {};
    micro.scale = 65536;
    micro.skipped = 1;
    EXPECT_EQ(amp_scale_monitor_step(&s.monitor, &micro), 0);
    EXPECT_EQ(s.monitor.steps, 0);
}

TEST(ScaleMonitor, TakesNull) {
    amp_scale_monitor monitor;
    amp_step_report report = {};
    amp_scale_monitor_start(nullptr, nullptr);
    amp_scale_monitor_start(&monitor, nullptr);
    EXPECT_EQ(monitor.health, AMP_SCALE_UNSCALED);
    EXPECT_EQ(amp_scale_monitor_step(nullptr, &report), 0);
    EXPECT_EQ(amp_scale_monitor_step(&monitor, nullptr), 0);
    EXPECT_STREQ(amp_scale_health_name(AMP_SCALE_UNSCALED), "");
    EXPECT_STREQ(amp_scale_health_name(AMP_SCALE_CEILING), "at its ceiling");
    EXPECT_STREQ(amp_scale_health_name(static_cast<amp_scale_health>(6)), "");
}

} // namespace
