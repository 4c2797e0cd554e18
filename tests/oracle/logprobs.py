"""Log probabilities as mlx-lm reports them in 32 bit floats: of each greedy token and of the likeliest beside it."""
import argparse
import json

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.sample_utils import make_logits_processors, make_sampler

from oracle import load_in_f32


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--asked", required=True, help="a JSON list of prompts, each with what is asked of it")
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    model = load_in_f32(args.model)
    answers = []
    for asked in json.loads(args.asked):
        bias = {int(token): value for token, value in asked["logit_bias"].items()}
        processors = make_logits_processors(bias or None, asked["repetition_penalty"], 20)
        positions = []
        steps = generate_step(
            mx.array(asked["prompt"]), model, max_tokens=asked["tokens"], sampler=make_sampler(0.0), logits_processors=processors
        )
        for token, logprobs in steps:
            likeliest = mx.argsort(-logprobs)[: asked["top"]]
            positions.append(
                {
                    "token": int(token),
                    "logprob": logprobs[token].item(),
                    "top": list(zip(likeliest.tolist(), logprobs[likeliest].tolist())),
                }
            )
        answers.append(positions)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
