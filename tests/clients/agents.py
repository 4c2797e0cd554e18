"""Coding agents as clients, each with a home of its own: aider and `claude --bare` with Pebble, and Claude Code, Codex and OpenCode with models of
a long context that say what they are told to (scripted_model.py). What does not fit Pebble must end as a full context does.

    agents.py PEBBLE_URL SCRIPTED_URL AGENT    where AGENT is aider, claude, codex or opencode; SCRIPTED_URL serves models by name"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cells import FIVE, cells, url
from wire import figure

PEBBLE, SCRIPTED, AGENT = url(), sys.argv[2].rstrip("/"), sys.argv[3]
BIN = Path(os.environ.get("PONDER_AGENTS", ""), "node_modules", ".bin")
SAID, FOUND = "Hello from Ponder.", "The result is here."


def run(home, command, **environment):
    """The agent in its home, without anything of this computer's settings."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    project = Path(home, "project")
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("one\ntwo\n")
    return subprocess.run(
        [str(part) for part in command], cwd=project, env=kept | {"HOME": str(home)} | environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=280,
    )


def within(run_it):
    """Runs a cell in a home that goes afterwards."""
    def cell():
        # Agents leave processes behind that still write for a moment.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            return run_it(Path(home))

    return cell


# ---- aider ------------------------------------------------------------------------------------------------------------------------

AIDER = "--no-check-update --analytics-disable --no-show-model-warnings --yes-always --no-git --no-pretty --no-fancy-input --no-detect-urls".split()


def aider(home, server, model, message, *more):
    # It would fetch a list of prices otherwise.
    prices = home / ".aider" / "caches" / "model_prices_and_context_window.json"
    prices.parent.mkdir(parents=True, exist_ok=True)
    prices.write_text(json.dumps({"openai/pebble": {}}))
    command = [os.environ["PONDER_AIDER"], "--model", f"openai/{model}", *AIDER, *more, "--message", message]
    return run(home, command, OPENAI_API_BASE=f"{server}/v1", OPENAI_API_KEY="local", LITELLM_LOCAL_MODEL_COST_MAP="True")


def aider_question(home):
    done = aider(home, SCRIPTED, "says", "Say hello", "a.txt")
    assert done.returncode == 0 and SAID in done.stdout, done
    asked = figure(PEBBLE, "ponder_answer_seconds_count")
    done = aider(home, PEBBLE, "pebble", "What is 2 + 3?", "--chat-mode", "ask")
    assert done.returncode == 0 and figure(PEBBLE, "ponder_answer_seconds_count") > asked, done


def aider_thinking(home):
    done = aider(home, SCRIPTED, "thinks", "Say hello", "a.txt", "--reasoning-effort", "high", "--no-check-model-accepts-settings")
    assert done.returncode == 0 and SAID in done.stdout and "I think" in done.stdout and "channel" not in done.stdout, done


def aider_error(home):
    done = aider(home, PEBBLE, "other", "Say hello", "a.txt")
    assert "NotFoundError" in done.stdout and "there is no model" in done.stdout, done
    (home / "project").mkdir(exist_ok=True)
    (home / "project" / "long.txt").write_text("one two three\n" * 3000)
    asked = figure(PEBBLE, "ponder_answer_seconds_count")
    done = aider(home, PEBBLE, "pebble", "Say hello", "long.txt")
    # The text that it makes of ContextWindowExceededError, and of an empty answer that was cut off.
    assert "possibly exhausted context window" in done.stdout and figure(PEBBLE, "ponder_answer_seconds_count") == asked, done


# ---- Claude Code ------------------------------------------------------------------------------------------------------------------


def claude(home, server, model, message, *more):
    environment = {"ANTHROPIC_BASE_URL": server, "ANTHROPIC_API_KEY": "local", "ANTHROPIC_MODEL": model, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                   "ANTHROPIC_DEFAULT_HAIKU_MODEL": model, "DISABLE_AUTOUPDATER": "1"}
    done = run(home, [BIN / "claude", "-p", message, "--output-format", "json", *more], **environment)
    told = json.loads(done.stdout)
    return done, told[-1] if isinstance(told, list) else told


def claude_bare(home):
    done, told = claude(home, PEBBLE, "pebble", "What is 2 + 3?", "--bare", "--tools", "")
    assert not told["is_error"] and told["usage"]["output_tokens"] > 0, done
    assert FIVE in told["result"], told["result"]


def claude_question(home):
    done, told = claude(home, SCRIPTED, "says", "Say hello")
    assert not told["is_error"] and told["result"] == SAID, done
    assert told["usage"]["input_tokens"] + told["usage"]["cache_read_input_tokens"] > 10_000, told["usage"]
    return f"{told['usage']['input_tokens'] + told['usage']['cache_read_input_tokens']} tokens of prompt"


def claude_tools(home):
    done, told = claude(home, SCRIPTED, "calls", "Where am I?", "--allowedTools", "Bash")
    assert not told["is_error"] and told["result"] == FOUND and told["num_turns"] == 2, done


def claude_thinking(home):
    done = run(home, [BIN / "claude", "-p", "Say hello", "--output-format", "stream-json", "--verbose", "--bare", "--tools", "Read"],
               ANTHROPIC_BASE_URL=SCRIPTED, ANTHROPIC_API_KEY="local", ANTHROPIC_MODEL="thinks", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    content = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"]]
    assert any(block["type"] == "thinking" and "I think" in block["thinking"] for block in content), done
    assert [block["text"] for block in content if block["type"] == "text"] == [SAID], content


def claude_error(home):
    done, told = claude(home, PEBBLE, "other", "Say hello", "--bare", "--tools", "")
    assert told["is_error"] and "model" in told["result"], told
    done, told = claude(home, PEBBLE, "pebble", "Say hello")
    assert told["is_error"] and "too long" in told["result"].lower(), told


# ---- Codex ------------------------------------------------------------------------------------------------------------------------


def codex(home, server, model, message):
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        f'model = "{model}"\nmodel_provider = "ponder"\nmodel_reasoning_effort = "high"\n'
        f'[model_providers.ponder]\nname = "Ponder"\nbase_url = "{server}/v1"\nwire_api = "responses"\nrequest_max_retries = 0\n'
    )
    command = [BIN / "codex", "exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox", message]
    done = run(home, command)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    return done, events, items


def codex_question(home):
    done, events, items = codex(home, SCRIPTED, "says", "Say hello")
    assert [item["text"] for item in items if item["type"] == "agent_message"] == [SAID], done
    usage = next(event["usage"] for event in events if event["type"] == "turn.completed")
    assert usage["input_tokens"] > 5000, usage
    return f"{usage['input_tokens']} tokens of prompt"


def codex_tools(home):
    done, _, items = codex(home, SCRIPTED, "executes", "Where am I?")
    assert [item["text"] for item in items if item["type"] == "agent_message"] == [FOUND], done
    [call] = [item for item in items if item["type"] == "command_execution"]
    assert "pwd" in call["command"] and call["aggregated_output"].strip().endswith("project"), call


def codex_thinking(home):
    done, _, items = codex(home, SCRIPTED, "thinks", "Say hello")
    assert any(item["type"] == "reasoning" and "I think" in item["text"] for item in items), done
    assert [item["text"] for item in items if item["type"] == "agent_message"] == [SAID], items


def codex_error(home):
    done, events, _ = codex(home, PEBBLE, "pebble", "Say hello")
    failed = [event for event in events if event["type"] in ("error", "turn.failed")]
    assert done.returncode != 0 and any("context window" in json.dumps(event) for event in failed), done
    done, events, _ = codex(home, PEBBLE, "other", "Say hello")
    assert done.returncode != 0 and any("there is no model" in json.dumps(event) for event in events), done


# ---- OpenCode ---------------------------------------------------------------------------------------------------------------------


def opencode(home, server, model, message):
    settings = {
        "model": f"ponder/{model}", "small_model": f"ponder/{model}", "autoupdate": False, "share": "disabled", "permission": {"bash": "allow"},
        "provider": {"ponder": {
            "npm": "@ai-sdk/openai-compatible", "name": "Ponder", "options": {"baseURL": f"{server}/v1"},
            "models": {model: {"name": model, "reasoning": True, "tool_call": True, "limit": {"context": 131072, "output": 4096}}},
        }},
    }
    (home / "project").mkdir(exist_ok=True)
    (home / "project" / "opencode.json").write_text(json.dumps(settings))
    command = [BIN / "opencode", "run", "--format", "json", message]
    done = run(home, command, OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1")
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done, [event["part"] for event in events if "part" in event], events


def opencode_question(home):
    asked = figure(SCRIPTED, "ponder_answer_seconds_count")
    done, parts, _ = opencode(home, SCRIPTED, "says", "Say hello")
    assert [part["text"].strip() for part in parts if part["type"] == "text"] == [SAID], done
    # The answer and the title, at once.
    assert figure(SCRIPTED, "ponder_answer_seconds_count") >= asked + 2


def opencode_tools(home):
    done, parts, _ = opencode(home, SCRIPTED, "runs", "Where am I?")
    [call] = [part for part in parts if part["type"] == "tool"]
    assert call["tool"] == "bash" and call["state"]["status"] == "completed" and call["state"]["output"].strip().endswith("project"), call
    assert [part["text"].strip() for part in parts if part["type"] == "text"] == [FOUND], done


def opencode_thinking(home):
    done, parts, _ = opencode(home, SCRIPTED, "thinks", "Say hello")
    assert [part["text"].strip() for part in parts if part["type"] == "text"] == [SAID], done
    # `run` prints no thoughts, and none is in the text.
    assert "I think" not in done.stdout or any(part["type"] == "reasoning" for part in parts), done


def opencode_error(home):
    done, _, events = opencode(home, PEBBLE, "other", "Say hello")
    assert any(event["type"] == "error" and "there is no model" in json.dumps(event) for event in events) or "there is no model" in done.stderr, done


CELLS = {
    "aider": {"question": aider_question, "thinking": aider_thinking, "error": aider_error},
    "claude": {"question, --bare": claude_bare, "question": claude_question, "tools": claude_tools, "thinking": claude_thinking, "error": claude_error},
    "codex": {"question": codex_question, "tools": codex_tools, "thinking": codex_thinking, "error": codex_error},
    "opencode": {"question": opencode_question, "tools": opencode_tools, "thinking": opencode_thinking, "error": opencode_error},
}
NAMES = {"aider": "aider", "claude": "Claude Code", "codex": "Codex", "opencode": "OpenCode"}
cells(NAMES[AGENT], {name: within(run_it) for name, run_it in CELLS[AGENT].items()})
