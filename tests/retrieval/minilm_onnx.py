"""The same model in ONNX Runtime, by the operations that its own optimizer makes of a BERT: attention in one, the sum
with its norm in one, bias and GELU in one. The graph is made here of the weights of the package."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from minilm import EPSILON, HEADS, LAYERS, MiniLm

OWN = "com.microsoft"


class OnnxMiniLm(MiniLm):
    def __init__(self, folder, threads):
        super().__init__(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(self.graph(), options, ["CPUExecutionProvider"])

    def states(self, ids):
        return self.session.run(None, {"ids": np.array([ids], np.int64)})[0][0]

    def graph(self):
        nodes, tensors = [], []

        def node(kind, inputs, output, domain="", **attributes):
            nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
            return output

        def weight(name, array=None):
            array = np.ascontiguousarray(self.weights[name] if array is None else array)
            tensors.append(numpy_helper.from_array(array, name))
            return name

        def turned(name):
            return weight(f"{name}.weight", self.weights[f"{name}.weight"].T)

        def norm(x, added, path, output):
            inputs = [x, added, weight(f"{path}.weight"), weight(f"{path}.bias")]
            return node("SkipLayerNormalization", inputs, output, OWN, epsilon=EPSILON)

        embeddings = "embeddings"
        words = node("Gather", [weight(f"{embeddings}.word_embeddings.weight"), "ids"], "words")
        zero, one, two = (weight(name, np.array([value])) for value, name in enumerate(("zero", "one", "two")))
        length = node("Slice", [node("Shape", ["ids"], "shape"), one, two, zero], "length")
        rows = self.weights[f"{embeddings}.position_embeddings.weight"]
        table = weight("positions", rows + self.weights[f"{embeddings}.token_type_embeddings.weight"][0])
        places = node("Unsqueeze", [node("Slice", [table, zero, length, zero], "places"), zero], "places_of_one")
        x = norm(words, places, f"{embeddings}.LayerNorm", "embedded")
        for layer in range(LAYERS):
            path = f"encoder.layer.{layer}"
            parts = [f"{path}.attention.self.{name}" for name in ("query", "key", "value")]
            joined = np.concatenate([self.weights[f"{part}.weight"].T for part in parts], 1)
            biases = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
            inputs = [x, weight(f"{path}.qkv", joined), weight(f"{path}.qkv.bias", biases)]
            attended = node("Attention", inputs, f"{path}.attended", OWN, num_heads=HEADS)

            def linear(x, name, kind, domain=""):
                product = node("MatMul", [x, turned(name)], f"{name}.product")
                return node(kind, [product, weight(f"{name}.bias")], f"{name}.output", domain)

            mixed = linear(attended, f"{path}.attention.output.dense", "Add")
            x = norm(mixed, x, f"{path}.attention.output.LayerNorm", f"{path}.mixed")
            inner = linear(x, f"{path}.intermediate.dense", "BiasGelu", OWN)
            x = norm(linear(inner, f"{path}.output.dense", "Add"), x, f"{path}.output.LayerNorm", f"{path}.states")
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "length"])
        states = helper.make_tensor_value_info(x, TensorProto.FLOAT, None)
        graph = helper.make_graph(nodes, "minilm", [ids], [states], tensors)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(OWN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
