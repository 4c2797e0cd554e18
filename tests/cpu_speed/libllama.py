"""llama.cpp's own library, driven without its headers: models, contexts and batches as its llama.h has them."""
import ctypes
import sys
import time
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_uint64, c_void_p
from pathlib import Path

import numpy as np

# Tokens of one call, as llama.cpp's programs have them; it computes 512 at a time by itself.
BATCH = 2048
WARNING, ERROR = 3, 4


class Params(ctypes.Structure):
    """Parameters of a model or a context, larger than they are: they are passed and returned by value."""

    _fields_ = [("words", c_int32 * 128)]


# Places of 32 bit fields in llama_context_params, with their defaults. Another version may have another order; the
# defaults tell.
CONTEXT, LOGICAL, PHYSICAL, SEQUENCES, THREADS, BATCH_THREADS = 0, 1, 2, 3, 7, 8
DEFAULTS = {CONTEXT: 512, LOGICAL: 2048, PHYSICAL: 512, SEQUENCES: 1, THREADS: 4, BATCH_THREADS: 4}


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


LOG = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)


@LOG
def log(level, text, _):
    if level in (WARNING, ERROR):
        print(text.decode(errors="replace"), end="", file=sys.stderr)


def open_library(folder, cpu):
    """The library with a card's back end and the fastest of its CPU back ends, or the named one of those alone."""
    library = ctypes.CDLL(str(next(folder.glob("libllama.*so"))))
    ggml = ctypes.CDLL(str(next(folder.glob("libggml.*so"))))
    ggml.ggml_backend_load.restype = c_void_p
    for function, returned, arguments in [
        ("llama_model_default_params", Params, []),
        ("llama_context_default_params", Params, []),
        ("llama_model_load_from_file", c_void_p, [c_char_p, Params]),
        ("llama_init_from_model", c_void_p, [c_void_p, Params]),
        ("llama_free", None, [c_void_p]),
        ("llama_model_get_vocab", c_void_p, [c_void_p]),
        ("llama_vocab_n_tokens", c_int32, [c_void_p]),
        ("llama_model_size", c_uint64, [c_void_p]),
        ("llama_get_memory", c_void_p, [c_void_p]),
        ("llama_memory_clear", None, [c_void_p, c_bool]),
        ("llama_batch_init", Batch, [c_int32, c_int32, c_int32]),
        ("llama_decode", c_int32, [c_void_p, Batch]),
        ("llama_get_logits", POINTER(c_float), [c_void_p]),
        ("llama_log_set", None, [LOG, c_void_p]),
    ]:
        getattr(library, function).restype = returned
        getattr(library, function).argtypes = arguments
    library.llama_log_set(log, None)
    if cpu is None:
        ggml.ggml_backend_load_all_from_path(c_char_p(str(folder).encode()))
    elif not ggml.ggml_backend_load(c_char_p(str(folder / f"libggml-cpu-{cpu}.so").encode())):
        raise SystemExit(f"llama.cpp has no back end {cpu} for this computer")
    library.llama_backend_init()
    return library


def back_end():
    """The name of the back end that this process computes with: a card's, or else the processor's."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    names = {line.rpartition("libggml-")[2].removesuffix(".so") for line in lines if "libggml-" in line}
    return "cuda" if "cuda" in names else next(name for name in names if name.startswith("cpu"))


class Model:
    """A model and at most one context of it. `seconds` is the time that it computed: the preparation of a call takes
    Python 0.1 ms, which would be 2 % of a step of the smallest model."""

    def __init__(self, library, path, threads):
        self.library, self.threads, self.context, self.seconds = library, threads, None, 0.0
        self.model = library.llama_model_load_from_file(str(path).encode(), library.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self.vocabulary = library.llama_vocab_n_tokens(library.llama_model_get_vocab(self.model))
        self.batch = library.llama_batch_init(BATCH, 0, 1)
        pointers = (self.batch.token, self.batch.pos, self.batch.logits)
        self.columns = [np.ctypeslib.as_array(pointer, (BATCH,)) for pointer in pointers]
        np.ctypeslib.as_array(self.batch.n_seq_id, (BATCH,))[:] = 1

    def open(self, tokens, sequences=1):
        """A new context for so many sequences of so many tokens each; the old one is closed."""
        self.close()
        params = self.library.llama_context_default_params()
        if any(params.words[place] != value for place, value in DEFAULTS.items()):
            raise SystemExit("this version of llama.cpp has its parameters in another order")
        # It rounds to 256 by itself, but only the sum of the sequences.
        params.words[CONTEXT] = (tokens + 255) // 256 * 256 * sequences
        params.words[SEQUENCES] = sequences
        params.words[THREADS] = params.words[BATCH_THREADS] = self.threads
        self.context = self.library.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit("llama.cpp cannot make a context")

    def close(self):
        if self.context:
            self.library.llama_free(self.context)
        self.context = None

    def clear(self):
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)

    def _decode(self, tokens, positions, sequences, wanted):
        count, (token, position, logits) = len(tokens), self.columns
        token[:count], position[:count], logits[:count] = tokens, positions, wanted
        for place, sequence in enumerate(sequences):
            self.batch.seq_id[place][0] = sequence
        self.batch.n_tokens = count
        start = time.perf_counter()
        code = self.library.llama_decode(self.context, self.batch)
        # It waits for what was not computed yet.
        rows = self.library.llama_get_logits(self.context)
        self.seconds += time.perf_counter() - start
        if code:
            raise SystemExit(f"llama_decode gave {code}")
        return np.ctypeslib.as_array(rows, (np.count_nonzero(logits[:count]), self.vocabulary))

    def _likeliest(self, rows):
        start = time.perf_counter()
        tokens = rows.argmax(axis=1)
        self.seconds += time.perf_counter() - start
        return tokens

    def read(self, tokens, sequence=0):
        """Reads a prompt and gives the likeliest next token."""
        for start in range(0, len(tokens), BATCH):
            part = tokens[start : start + BATCH]
            last = [place == len(tokens) - 1 for place in range(start, start + len(part))]
            rows = self._decode(part, np.arange(start, start + len(part)), [sequence] * len(part), last)
        return self._likeliest(rows)[0]

    def step(self, tokens, position):
        """Decodes one token of each sequence and gives the next ones."""
        return self._likeliest(self._decode(tokens, position, range(len(tokens)), 1))

    def logits(self, tokens, start):
        """The logits after each token from `start` on, of a chunk that is read with nothing before it."""
        self.clear()
        return self._decode(tokens, np.arange(len(tokens)), [0] * len(tokens), np.arange(len(tokens)) >= start)

    def perplexity(self, tokens, chunk):
        """As `llama-perplexity` has it: the second half of each chunk is predicted. Gives the number of predictions,
        too."""
        total, predictions, half = 0.0, 0, chunk // 2
        self.open(chunk)
        for start in range(0, len(tokens) - chunk + 1, chunk):
            ids = np.array(tokens[start : start + chunk])
            for row, token in zip(self.logits(ids, half)[:-1], ids[half + 1 :]):
                row = row.astype(np.float64)
                total += np.log(np.exp(row - row.max()).sum()) + row.max() - row[token]
                predictions += 1
        return float(np.exp(total / predictions)), predictions
