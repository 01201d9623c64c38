"""Turns the quantised chat model of a package into a folder that vLLM loads. Runs in the vLLM environment, nowhere else.

The weights come as GGUF, which the CPU build of vLLM cannot load; transformers reads it, and writes safetensors, the tokenizer
and the chat template. Started as a program of its own, so it must import nothing of ours: that environment holds no Tandem.
"""

import sys
from pathlib import Path

import torch  # the vLLM environment's
from transformers import (  # type: ignore[import-not-found]  # only the vLLM environment has it
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaForCausalLM,
)

QUESTION = "What is the capital of France?"
EXPECTED = "Paris"


def convert(*, source: Path, target: Path) -> None:
    """Write `target` from the GGUF file `source`.

    Raises:
        SystemExit: the converted model does not answer as it should, so the conversion went wrong.
    """
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    loaded = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.bfloat16)
    config = loaded.config
    # The weights are plain numbers once loaded; left in, this entry would make vLLM look for quantised ones.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.load_state_dict(dict(loaded.state_dict()))
    model.tie_weights()
    answer = ask(model, tokenizer)
    if EXPECTED not in answer:
        raise SystemExit(
            f"the converted model answers {answer!r} to {QUESTION!r}: the conversion went wrong, {target} was not written"
        )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def ask(model: LlamaForCausalLM, tokenizer: AutoTokenizer) -> str:
    """The model's answer to the question whose answer is known: a wrong conversion still writes fluent text."""
    chat = [{"role": "user", "content": QUESTION}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**prompt, max_new_tokens=12, do_sample=False)
    return str(tokenizer.decode(output[0][prompt["input_ids"].shape[1] :]))


if __name__ == "__main__":
    convert(source=Path(sys.argv[1]), target=Path(sys.argv[2]))
