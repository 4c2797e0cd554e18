"""A tokenizer of 320 tokens with a chat template, so that a tiny model can be talked to."""
import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from shapes import VOCABULARY

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The placeholders of a tiny model with vision, see `vision_rows/row.py`.
FIRST_PLACEHOLDER, PLACEHOLDERS = 300, 5


def write_tokenizer(folder):
    """Writes the tokenizer's files; tells the ids of control tokens and how many ordinary ones come before them."""
    return write(folder, VOCABULARY - len(CONTROL), CONTROL, TEMPLATE)


def write_vision_tokenizer(folder, placeholders):
    """The same with placeholders (names by id) before the control tokens; the template writes the first for an image."""
    ids = range(FIRST_PLACEHOLDER, FIRST_PLACEHOLDER + PLACEHOLDERS)
    control = [placeholders.get(token, f"<|unused_{token}|>") for token in ids] + CONTROL
    more = range(FIRST_PLACEHOLDER + len(control), VOCABULARY)
    control += [placeholders.get(token, f"<|unused_{token}|>") for token in more]
    parts = (
        "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
        "{% if part.type == 'image' %}PLACEHOLDER{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    ).replace("PLACEHOLDER", placeholders.get("template", control[0]))
    return write(folder, FIRST_PLACEHOLDER, control, TEMPLATE.replace("{{ message.content }}", parts))


def write(folder, ordinary, control, template):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(alphabet)}
    merges = []
    for left in "etaoinsr":
        for right in "etaoins":
            if len(vocabulary) < ordinary:
                vocabulary[left + right] = len(vocabulary)
                merges.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(control)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "chat_template": template,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))
    return {"ordinary": len(vocabulary), "end": tokenizer.token_to_id("<|im_end|>")}
