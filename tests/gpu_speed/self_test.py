"""The parts of the bench of cards that need no card, tried on this computer: the files of random weights, llama.cpp's
driver with the processor's back end, rows, medians, ratios and the roofline, and code that is put into a library.

    python self_test.py --library LLAMA_CPP [--tools CUDA]

LLAMA_CPP is the folder of llama.cpp's libraries, for processors or for cards; TOOLS has cuobjdump."""
import argparse
import contextlib
import io
import json
import math
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np

import beside
import machine_code
from bench import Work
from card import BYTES, LOADS, THREADS, kernel
from figures import OURS, table
from gguf import GGUFReader
from gguf.quants import dequantize
from llama_peer import LlamaCpp
from random_gguf import SPREAD, blocks
from weights import bytes_a_token, of_folder, of_gguf

COMMON = {
    "hidden_size": 256, "num_hidden_layers": 2, "intermediate_size": 512, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6, "vocab_size": 1024, "rope_theta": 1e6,
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
}
YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
TINY = {
    "qwen3": {"tie_word_embeddings": True},
    "qwen3_moe": {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256},
    "gpt_oss": {
        "num_local_experts": 8, "num_experts_per_tok": 4, "intermediate_size": 256, "sliding_window": 128,
        "rope_scaling": YARN,
    },
}
ARGS = None


def config_of(family):
    return COMMON | {"model_type": family} | TINY[family]


class Peer:
    """An engine whose name and weights are known."""

    def __init__(self, name, weights):
        self.name, self.weights = name, weights

    def bytes_a_token(self, _):
        return self.weights


class Files(unittest.TestCase):
    def test_llama_cpp_loads_every_family_and_measures_it(self):
        for family in TINY:
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                rows = self.measured(family, Path(folder))
                self.assertEqual(len(rows), 8)
                self.assertTrue(all(value > 0 and math.isfinite(value) for value in rows.values()), rows)
                self.assertIn("decode after 2,048, tokens/s", rows)
                self.assertIn("decode of 3 together, tokens/s", rows)

    def measured(self, family, folder):
        (folder / "config.json").write_text(json.dumps(config_of(family)))
        sizes = {"generate": 4, "sequences": [1, 3], "batch_prompt": 8, "batch_generate": 4}
        work = Work(family, folder, folder / "tiny.gguf", **sizes)
        peer = LlamaCpp("llama.cpp", ARGS.library, back_end="cpu")
        peer.prepare(work)
        reader = GGUFReader(work.gguf)
        written = {tensor.name: int(tensor.n_bytes) for tensor in reader.tensors}
        self.assertEqual(bytes_a_token(written, config_of(family)), of_gguf(folder))
        return peer.speed(work) | peer.batch(work)

    def test_weights_have_no_mean(self):
        for kind in SPREAD:
            numbers = dequantize(blocks(kind, 0.02, np.random.default_rng(1)), kind)
            self.assertLess(abs(float(numbers.mean())), 0.02 / 50, kind)
            # The scale of four bit floats is a power of two.
            self.assertLess(abs(math.log2(float(numbers.std()) / 0.02)), 0.51 if kind.name == "MXFP4" else 0.02, kind)


class Roofline(unittest.TestCase):
    def test_tables_and_experts_count_as_far_as_they_are_read(self):
        sizes = {
            "model.embed_tokens.weight": 1000, "model.layers.0.mlp.switch_mlp.up_proj.weight": 160,
            "model.layers.0.mlp.gate.weight": 7, "lm_head.weight": 500,
        }
        self.assertEqual(bytes_a_token(sizes, config_of("qwen3_moe")), 160 / 4 + 7 + 500)
        tied = {"model.embed_tokens.weight": 1000, "model.embed_tokens_per_layer.weight": 4000}
        self.assertEqual(bytes_a_token(tied, config_of("qwen3")), 1000)

    def test_sizes_come_from_the_headers_of_a_folder(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "config.json").write_text(json.dumps(config_of("qwen3")))
            entry = {"dtype": "U8", "shape": [12], "data_offsets": [4, 16]}
            header = json.dumps({"__metadata__": {}, "model.norm.weight": entry}).encode()
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
            self.assertEqual(of_folder(folder), 12)

    def test_a_share_is_the_bytes_of_a_second_to_the_bandwidth(self):
        figures = {beside.decode_row(32): {OURS: [100.0, 200.0], "llama.cpp": [300.0]}}
        engines = [Peer(OURS, 1e9), Peer("llama.cpp", 2e9), Peer("mlx-lm", 1e9)]
        rows = beside.shares(figures, engines, None, 2e12)
        self.assertEqual(rows, {beside.share_row(32): {OURS: [5.0, 10.0], "llama.cpp": [30.0]}})


class Tables(unittest.TestCase):
    def lines(self, figures, engines):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            table("a shape", figures, engines, ["mlx-lm", "llama.cpp"], (0.0, 0.0, 0.0))
        return [line for line in out.getvalue().splitlines() if line.startswith("| ")]

    def test_medians_ranges_and_ratios(self):
        figures = {"decode": {OURS: [90.0, 300.0, 120.0], "mlx-lm": [60.0, 50.0, 70.0], "llama.cpp": [240.0]}}
        title, row = self.lines(figures, [Peer(OURS, 1), Peer("mlx-lm", 1), Peer("llama.cpp", 1)])
        self.assertEqual(title, "| measurement | ours | mlx-lm | llama.cpp | ours / mlx-lm | ours / llama.cpp |")
        self.assertEqual(row, "| decode | 120 [90.0–300] | 60.0 [50.0–70.0] | 240 | 2.00 | 0.50 |")

    def test_an_engine_that_was_not_measured_has_no_column(self):
        title, row = self.lines({"load": {OURS: [4.0], "mlx-lm": [2.0]}}, [Peer(OURS, 1), Peer("mlx-lm", 1)])
        self.assertEqual(title, "| measurement | ours | mlx-lm | ours / mlx-lm |")
        self.assertEqual(row, "| load | 4.0 | 2.0 | 2.00 |")
        title, row = self.lines({"load": {"llama.cpp": [2.0]}}, [Peer("llama.cpp", 1)])
        self.assertEqual((title, row), ("| measurement | llama.cpp |", "| load | 2.0 |"))

    def test_rows_need_a_rate_for_each_number_of_sequences(self):
        self.assertEqual(beside.batch_rows([1, 32], [5.0, 9.0])["decode of 32 together, tokens/s"], 9.0)
        with self.assertRaises(ValueError):
            beside.batch_rows([1, 2], [5.0])


class MachineCode(unittest.TestCase):
    def library(self):
        """An ELF file with the section and two modules of 32 and 16 bytes."""
        parts = [struct.pack(machine_code.HEAD, machine_code.MAGIC, 1, 16, size) + b"x" * size for size in (32, 16)]
        names, body = b"\0.nv_fatbin\0.shstrtab\0", b"".join(parts)
        names = names.ljust(24, b"\0")
        start, table_at = 64 + len(names), 64 + len(names) + len(body)
        data = bytearray(64) + names + body
        for name, at, size in [(0, 0, 0), (1, start, len(body)), (12, 64, len(names))]:
            data += struct.pack("<IIQQQQ", name, 1, 0, 0, at, size) + bytes(24)
        struct.pack_into("<Q", data, 0x28, table_at)
        struct.pack_into("<HHH", data, 0x3A, 64, 3, 2)
        return data, start

    def test_code_takes_the_place_of_a_module(self):
        data, start = self.library()
        self.assertEqual(machine_code.modules(data), [(start, 48), (start + 48, 32)])
        new = struct.pack(machine_code.HEAD, machine_code.MAGIC, 1, 16, 8) + b"newcode!"
        machine_code.put_in(data, {1: new})
        self.assertEqual(data[start : start + 48], new.ljust(48, b"\0"))
        self.assertEqual(struct.unpack_from(machine_code.HEAD, data, start + 48)[3], 0)
        with self.assertRaises(SystemExit):
            machine_code.put_in(data, {2: bytes(33)})

    def test_the_architecture_decides(self):
        names = {"86", "89", "120a", "121a"}
        self.assertFalse(machine_code.has_machine_code(names, 90))
        self.assertFalse(machine_code.has_machine_code(names, 80))
        self.assertTrue(machine_code.has_machine_code(names, 87) and machine_code.has_machine_code(names, 120))
        self.assertEqual(machine_code.source_for({"75", "80", "90", "120a"}, 100), 90)
        self.assertEqual(machine_code.cuda_of("\n\n.version 9.1\n.target sm_90\n"), 13010)

    def test_the_packages_library_asks_for_a_driver(self):
        library = ARGS.library / machine_code.LIBRARY
        if not ARGS.tools or not library.exists():
            self.skipTest("needs --tools and llama.cpp for cards")
        tools, data = machine_code.Tools(ARGS.tools), library.read_bytes()
        listed = tools.run("cuobjdump", "-arch", "sm_90", "-lptx", library).stdout
        self.assertEqual(len(machine_code.modules(data)), listed.count(".ptx"))
        with tempfile.TemporaryDirectory() as out:
            for architecture, cuda in ((90, 13010), (89, 12080)):
                self.assertEqual(machine_code.chosen(ARGS.library, tools, Path(out), architecture, cuda), ARGS.library)


class Kernel(unittest.TestCase):
    def test_every_byte_is_read_once(self):
        blocks = BYTES // 16 // LOADS // THREADS
        self.assertEqual(blocks * THREADS * LOADS * 16, BYTES)
        self.assertEqual(kernel().count(b"ld.global.v4"), LOADS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--tools", type=Path)
    ARGS = parser.parse_args()
    unittest.main(argv=["self_test.py"], warnings="ignore")
