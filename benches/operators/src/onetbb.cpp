// oneTBB's pipeline and its flow graph (lightweight and queueing) as a chain of 1,000 operators.
// Prints `model tuples_per_second cpu_ns_per_tuple_and_operator`.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_pipeline.h>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr int operators = 1000;
constexpr int live_max = 256;

struct Tuple {
  double value;
  unsigned long payload[7];
};

int cost;

__attribute__((noinline)) Tuple* operate(Tuple* tuple) {
  volatile double value = tuple->value;
  for (int i = 0; i < cost; ++i) value = value * 1.0000001;
  tuple->value = value;
  return tuple;
}

using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval t) { return t.tv_sec + t.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Meter {
  Clock::time_point begin = Clock::now();
  double cpu = cpu_seconds();
  void print(const char* model, double tuples) const {
    double wall = std::chrono::duration<double>(Clock::now() - begin).count();
    std::printf("%s %.1f %.3f\n", model, tuples / wall, (cpu_seconds() - cpu) * 1e9 / tuples / operators);
  }
};

void pipeline(Clock::duration span) {
  long sunk = 0;
  Meter meter;
  auto end = Clock::now() + span;
  using tbb::filter;
  auto serial = tbb::filter_mode::serial_in_order;
  auto chain = tbb::make_filter<void, Tuple*>(serial, [&](tbb::flow_control& control) -> Tuple* {
    if (Clock::now() < end) return new Tuple{1.0, {}};
    control.stop();
    return nullptr;
  });
  for (int i = 0; i < operators; ++i) chain &= tbb::make_filter<Tuple*, Tuple*>(serial, [](Tuple* tuple) { return operate(tuple); });
  tbb::parallel_pipeline(live_max, chain & tbb::make_filter<Tuple*, void>(serial, [&](Tuple* tuple) {
    delete tuple;
    ++sunk;
  }));
  meter.print("onetbb-pipeline", sunk);
}

template <typename Policy>
void flow_graph(const char* model, Clock::duration span) {
  using namespace tbb::flow;
  using Node = function_node<Tuple*, Tuple*, Policy>;
  graph g;
  std::atomic<long> sunk{0};
  limiter_node<Tuple*> limiter(g, live_max);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < operators; ++i) nodes.push_back(std::make_unique<Node>(g, serial, [](Tuple* tuple) { return operate(tuple); }));
  function_node<Tuple*, continue_msg, Policy> sink(g, serial, [&](Tuple* tuple) {
    delete tuple;
    ++sunk;
    return continue_msg{};
  });
  make_edge(limiter, *nodes.front());
  for (int i = 0; i + 1 < operators; ++i) make_edge(*nodes[i], *nodes[i + 1]);
  make_edge(*nodes.back(), sink);
  make_edge(sink, limiter.decrementer());
  Meter meter;
  auto end = Clock::now() + span;
  Tuple* waiting = nullptr;
  while (Clock::now() < end) {
    if (!waiting) waiting = new Tuple{1.0, {}};
    if (limiter.try_put(waiting)) waiting = nullptr;
  }
  g.wait_for_all();
  delete waiting;
  meter.print(model, sunk);
}

}  // namespace

int main(int, char** arguments) {
  cost = std::atoi(arguments[1]);
  auto span = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::atof(arguments[2])));
  pipeline(span);
  flow_graph<tbb::flow::queueing>("onetbb-queueing", span);
  flow_graph<tbb::flow::queueing_lightweight>("onetbb-lightweight", span);
}
