"""Stand-ins for what vLLM's parsers import and do not use: torch, CUDA, grammars, a server. So its own parsers run on the few small
packages of suites.requirements.txt."""

import importlib
import importlib.abc
import importlib.machinery
import re
import sys
import types

# Whole packages that are not installed.
ABSENT = {
    "PIL", "aiohttp", "blake3", "cachetools", "cloudpickle", "cv2", "diskcache", "fastapi", "gguf", "lark", "llguidance", "mistral_common", "model_hosting_container_standards",
    "msgspec", "openai_harmony", "opentelemetry", "outlines_core", "prometheus_client", "psutil", "py", "pybase64", "ray", "sentence_transformers", "setproctitle",
    "starlette", "tblib", "tiktoken", "torch", "torchvision", "triton", "uvicorn", "uvloop", "xgrammar", "zmq",
}
# Modules of vLLM itself that reach for the engine.
ENGINE = {"vllm.connections", "vllm.renderers.chat_utils.item_tracker", "vllm.config", "vllm.model_executor", "vllm.platforms", "vllm.v1", "vllm.engine", "vllm.distributed", "vllm.multimodal", "vllm.lora", "vllm.outputs"}


class Kind(type):
    """A class of which every attribute is another stand-in, so that it serves as a base, a type, a decorator or a value."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __getitem__(cls, key):
        return cls

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0

    def __contains__(cls, item):
        return False

    def __bool__(cls):
        return False


def stand_in(name):
    def new(cls, *arguments, **options):
        # A decorator gives back what it decorates.
        if len(arguments) == 1 and not options and (isinstance(arguments[0], types.FunctionType) or isinstance(arguments[0], type)):
            return arguments[0]
        return object.__new__(cls)

    body = {
        "__new__": new,
        "__init__": lambda self, *arguments, **options: None,
        "__call__": lambda self, *arguments, **options: arguments[0] if len(arguments) == 1 and callable(arguments[0]) else stand_in(name)(),
        "__getattr__": lambda self, attribute: hidden(attribute),
        "__init_subclass__": classmethod(lambda cls, **options: None),
        "__enter__": lambda self: self,
        "__exit__": lambda self, *error: None,
        "__get_pydantic_core_schema__": classmethod(any_schema),
    }
    return Kind(name, (), body)


def hidden(attribute):
    if attribute.startswith("__"):
        raise AttributeError(attribute)
    return stand_in(attribute)()


def any_schema(cls, source, handler):
    from pydantic_core import core_schema

    return core_schema.any_schema()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that are not installed."""

    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        absent = parts[0] in ABSENT or any(".".join(parts[:length]) in ENGINE for length in range(1, len(parts) + 1))
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__version__ = "9.9"

        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            made = stand_in(name)
            setattr(module, name, made)
            return made

        module.__getattr__ = attribute
        return module

    def exec_module(self, module):
        pass


class Vocabulary(dict):
    """Knows every marker and every character: each gets an id on first use."""

    MARKER = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z_]+\]|◁/?think▷")

    def __init__(self):
        super().__init__((chr(code), code) for code in range(128))
        self.texts = {code: text for text, code in self.items()}

    def __missing__(self, text):
        id = self[text] = len(self) + 1000
        self.texts[id] = text
        return id

    def __contains__(self, text):
        return True

    def get(self, text, default=None):
        return self[text]


class Tokenizer:
    """Cuts text into markers and characters. It stands for the tokenizers that the tests would fetch from the hub."""

    all_special_tokens, all_special_ids = (), ()
    bos_token_id = eos_token_id = pad_token_id = None
    bos_token = eos_token = "</s>"
    is_fast, vocab_size, name_or_path, chat_template = True, 0, "stand-in", None

    def __init__(self):
        self.vocabulary = Vocabulary()

    def get_vocab(self):
        return self.vocabulary

    vocab = property(get_vocab)

    def add_tokens(self, tokens, **options):
        return len([self.vocabulary[str(token)] for token in tokens])

    def tokenize(self, text, **options):
        pieces, at = [], 0
        for marker in Vocabulary.MARKER.finditer(text):
            pieces += [*text[at : marker.start()], marker[0]]
            at = marker.end()
        return pieces + [*text[at:]]

    def convert_tokens_to_ids(self, tokens):
        if isinstance(tokens, str):
            return self.vocabulary[tokens]
        return [self.vocabulary[token] for token in tokens]

    def convert_ids_to_tokens(self, ids, **options):
        return [self.vocabulary.texts.get(id, "") for id in ids]

    def convert_tokens_to_string(self, tokens):
        return "".join(tokens)

    def encode(self, text, **options):
        return self.convert_tokens_to_ids(self.tokenize(text))

    def decode(self, ids, **options):
        return "".join(self.convert_ids_to_tokens([ids] if isinstance(ids, int) else ids))

    def __call__(self, text, **options):
        return types.SimpleNamespace(input_ids=self.encode(text))

    def __len__(self):
        return 100_000


def install(sources):
    """Before vLLM is imported: the stand-ins, and the package without what its first file starts."""
    sys.meta_path.insert(0, Finder())
    package = types.ModuleType("vllm")
    package.__path__ = [str(sources / "vllm")]
    package.__version__ = "0.33.0"
    package.__getattr__ = lambda name: hidden(name)
    sys.modules["vllm"] = package
    import transformers

    transformers.AutoTokenizer.from_pretrained = lambda *arguments, **options: Tokenizer()
    sys.path.insert(0, str(sources))
    tokenizers = importlib.import_module("vllm.tokenizers")
    tokenizers.get_tokenizer = lambda *arguments, **options: Tokenizer()
