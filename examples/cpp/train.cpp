// SPDX-License-Identifier: BSD-3-Clause
// Tensors, autograd, a module, saving and loading on the device `puone`, from C++ alone.
#include <torch/torch.h>

#include <iostream>
#include <sstream>

// [quote: tensors]
const torch::Device kDevice("puone:0");

void useTensors() {
  auto a = torch::arange(6, kDevice).reshape({2, 3}).to(torch::kFloat);
  auto b = torch::ones({3, 2}, torch::device(kDevice));
  auto product = a.matmul(b); // queued; the host goes on
  std::cout << "product on " << product.device() << ": " << product.sum().item<float>() << "\n";
}
// [end: tensors]

// [quote: autograd]
void useAutograd() {
  auto x = torch::full({3}, 2.0, torch::device(kDevice).requires_grad(true));
  (x * x).sum().backward();
  std::cout << "gradient: " << x.grad().sum().item<float>() << "\n"; // 3 * 2x
}
// [end: autograd]

// [quote: module]
struct Net : torch::nn::Module {
  torch::nn::Linear first{nullptr}, second{nullptr};

  Net() {
    first = register_module("first", torch::nn::Linear(4, 16));
    second = register_module("second", torch::nn::Linear(16, 1));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return second(torch::relu(first(x)));
  }
};

double train(Net& net, const torch::Tensor& x, const torch::Tensor& y) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::Tensor loss;
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    loss = (net.forward(x) - y).square().mean();
    loss.backward();
    optimizer.step();
  }
  return loss.item<double>();
}
// [end: module]

// [quote: saving]
torch::Tensor saveAndLoad(const torch::Tensor& tensor) {
  std::stringstream file;
  torch::save(tensor, file);
  torch::Tensor loaded;
  torch::load(loaded, file); // to the device it came from
  return loaded;
}
// [end: saving]

int main() {
  torch::manual_seed(0);
  useTensors();
  useAutograd();

  Net net;
  net.to(kDevice);
  auto x = torch::rand({32, 4}).to(kDevice);
  auto y = x.sum(1, /*keepdim=*/true);
  const double loss = train(net, x, y);
  std::cout << "loss after training: " << (loss < 0.01 ? "small" : "large") << "\n";

  auto weight = net.first->weight.detach();
  auto loaded = saveAndLoad(weight);
  std::cout << "loaded on " << loaded.device() << ": "
            << (torch::equal(loaded, weight) ? "equal" : "different") << "\n";
}
