"""Cases of vllm-mlx 0.6.0 (test_responses_api, test_normalize_messages, test_tool_choice_*, test_streaming_*) and of mlx-lm 0.32.2's server
(test_server), re-stated.

    restated_openai.py URL"""
import json

from cells import FIVE, RESULT, SCHEMA, SUM, WEATHER
from restated import HASH, URL, USER, case, chat, longer, one_prompt, refused, responses, run, say
from wire import CHAT, RESPONSES, Chat, Messages, Responses, ask, post, send

# ---- vllm-mlx: test_responses_api ------------------------------------------------------------------------------------------------

API = "vllm-mlx: Responses"
SKY = "Name the colour of the sky."


def item(role, content):
    return {"type": "message", "role": role, "content": content}


@case(API, "`output_text` of a whole response is put together by the SDKs, as with OpenAI's own; theirs sends it too")
def a_whole_response():
    whole, told = ask(URL, Responses, Responses.body([("user", SUM)], False, False))
    assert whole["output"][0]["type"] == "message" and FIVE in told.text and "output_text" not in whole


@case(API)
def a_response_is_gone_on_from():
    first = post(URL, RESPONSES, {"model": "pebble", "input": SKY, "max_output_tokens": 8, "temperature": 0}).json()
    said = first["output"]
    one_prompt(lambda: responses([item("user", SKY), *said, item("user", "Why?")]), lambda: responses("Why?", previous_response_id=first["id"]))
    second = post(URL, RESPONSES, {"model": "pebble", "input": "Why?", "previous_response_id": first["id"], "max_output_tokens": 8}).json()
    third = [item("user", SKY), *said, item("user", "Why?"), *second["output"], item("user", "And?")]
    one_prompt(lambda: responses(third), lambda: responses("And?", previous_response_id=second["id"]))


@case(API)
def earlier_instructions_are_not_carried_on():
    first = post(URL, RESPONSES, {"model": "pebble", "input": SKY, "instructions": "One.", "max_output_tokens": 8, "temperature": 0}).json()
    again = [item("user", SKY), *first["output"], item("user", "Why?")]
    one_prompt(lambda: responses(again, instructions="Two."), lambda: responses("Why?", instructions="Two.", previous_response_id=first["id"]))


@case(API)
def earlier_system_messages_are_carried_on():
    given = [item("system", "Stay."), item("user", SKY)]
    first = post(URL, RESPONSES, {"model": "pebble", "input": given, "max_output_tokens": 8, "temperature": 0}).json()
    again = [*given, *first["output"], item("user", "Why?")]
    one_prompt(lambda: responses(again), lambda: responses("Why?", previous_response_id=first["id"]))


@case(API)
def a_response_that_is_not_kept_is_not_found():
    refused(RESPONSES, {"input": "hi", "previous_response_id": "resp_missing"}, "previous_response_id", 404)
    first = post(URL, RESPONSES, {"model": "pebble", "input": "hi", "max_output_tokens": 1, "store": False}).json()
    assert first["store"] is False
    refused(RESPONSES, {"input": "hi", "previous_response_id": first["id"]}, "previous_response_id", 404)


@case(API, "a developer's words after the question join it; theirs move to the front")
def developers_are_the_system():
    one_prompt(lambda: responses([item("system", "Be terse."), item("user", "Hi")]), lambda: responses([item("developer", "Be terse."), item("user", "Hi")]))
    one_prompt(lambda: responses("Hi\n\nBe terse."), lambda: responses([item("user", "Hi"), item("developer", "Be terse.")]))


@case(API)
def instructions_and_a_developers_are_one():
    both = lambda: responses([item("developer", "Two."), item("user", "Hi")], instructions="One.")  # noqa: E731
    one_prompt(lambda: responses("Hi", instructions="One.\n\nTwo."), both)


@case(API, "Claude Code's hash line is dropped from its own surface alone; theirs looks for it in every instruction")
def the_hash_line_elsewhere():
    longer(lambda: responses("Hi", instructions=f"{HASH}\nBe brief."), lambda: responses("Hi", instructions="Be brief."))


@case(API, "a call and its result are given to the template as such; theirs are words of the conversation")
def a_call_and_its_result():
    call = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": json.dumps({"city": "Oslo"})}
    output = {"type": "function_call_output", "call_id": "call_1", "output": RESULT}
    body = {"model": "pebble", "input": [item("user", WEATHER), call, output], "tools": Responses.tools, "temperature": 0}
    told = ask(URL, Responses, body)[1]
    assert "12" in told.text, told
    bad = call | {"arguments": "no json"}
    refused(RESPONSES, {"input": [item("user", WEATHER), bad, output]}, "input[1].arguments")


@case(API, "tools and items that run elsewhere are left out; theirs tell the model that they are not available")
def what_runs_elsewhere_is_skipped():
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
    elsewhere = [{"type": "web_search_preview"}, {"type": "code_interpreter", "container": {"type": "auto"}}, *Responses.tools]
    one_prompt(lambda: responses([item("user", "Hi")], tools=Responses.tools), lambda: responses([item("user", "Hi"), search], tools=elsewhere))


@case(API)
def an_effort_is_no_error():
    for effort in ["minimal", "low", "medium", "high", "xhigh", "none"]:
        responses("Hi", reasoning={"effort": effort})


@case(API, "a thought that was sent back belongs to the answer's turn, where Pebble's template drops it; theirs is an answer of its own")
def a_thought_sent_back():
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}]}
    answer = item("assistant", "Hello")
    one_prompt(lambda: responses([item("user", "Hi"), answer, item("user", "And?")]),
               lambda: responses([item("user", "Hi"), thought, answer, item("user", "And?")]))


@case(API)
def a_cut_response_is_incomplete():
    whole, told = say(Responses, "input", "Hello")
    assert told.end == "incomplete" and whole["incomplete_details"] == {"reason": "max_output_tokens"}


@case(API)
def template_arguments_are_honoured():
    plain, thinking = (ask(URL, Responses, {"model": "pebble", "input": SUM, "temperature": 0, "chat_template_kwargs": {"enable_thinking": on}})[1]
                       for on in (False, True))
    assert not plain.thought and thinking.thought, (plain, thinking)


# ---- vllm-mlx: test_normalize_messages -------------------------------------------------------------------------------------------

NORMALIZE = "vllm-mlx: conversations"


def system(text, role="system"):
    return {"role": role, "content": text}


@case(NORMALIZE)
def two_and_three_system_messages_are_one():
    one_prompt(lambda: chat(system("One.\n\nTwo."), USER), lambda: chat(system("One."), system("Two."), USER))
    one_prompt(lambda: chat(system("One.\n\nTwo.\n\nThree."), USER), lambda: chat(system("One."), system("Two."), system("Three."), USER))


@case(NORMALIZE)
def a_developer_is_the_system():
    one_prompt(lambda: chat(system("One.")), lambda: chat(system("One.", "developer")))
    one_prompt(lambda: chat(system("One.\n\nTwo."), USER), lambda: chat(system("One.", "developer"), system("Two."), USER))


@case(NORMALIZE, "neighbours of one role are merged only if the template refuses them, and Pebble's takes them; theirs always are")
def two_questions_in_a_row():
    longer(lambda: chat(USER, USER), lambda: chat({"role": "user", "content": "hello\n\nhello"}))


@case(NORMALIZE)
def what_alternates_is_left_as_it_is():
    told = chat(system("One."), USER, {"role": "assistant", "content": "Hi!"}, USER)
    assert told.completion == 1


@case(NORMALIZE, "an empty conversation is refused by name; theirs reaches the template")
def no_messages():
    refused(CHAT, {"messages": []}, "messages")


@case(NORMALIZE, "an address of an image is refused with its place, since nothing is fetched; theirs is kept")
def a_remote_image_among_the_parts():
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "http://192.0.2.1/a.png"}}]
    refused(CHAT, {"messages": [USER, {"role": "user", "content": parts}]}, "messages[1].content[1]")


@case(NORMALIZE)
def a_name_beside_the_role():
    one_prompt(lambda: chat(system("One."), USER), lambda: chat(system("One.") | {"name": "sys"}, USER))


@case(NORMALIZE)
def a_call_without_words_and_an_answer_after_it():
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": RESULT}
    chat(USER, {"role": "assistant", "content": None, "tool_calls": [call]}, result, {"role": "assistant", "content": "Sunny."}, USER)


# ---- vllm-mlx: test_tool_choice_forced, test_tool_choice_none --------------------------------------------------------------------

CHOICE = "vllm-mlx: tool choice"
OTHER = {"type": "function", "function": {"name": "calculate", "description": "c", "parameters": SCHEMA}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


@case(CHOICE)
def a_named_tool_hides_the_others():
    one_prompt(lambda: chat(USER, tools=Chat.tools, tool_choice=NAMED), lambda: chat(USER, tools=[*Chat.tools, OTHER], tool_choice=NAMED))


@case(CHOICE, "the model is asked at the end of the conversation, where the cached prefix holds; theirs at the front")
def a_named_tool_is_asked_for():
    longer(lambda: chat(USER, tools=Chat.tools, tool_choice=NAMED), lambda: chat(USER, tools=Chat.tools))


@case(CHOICE)
def a_required_call_is_asked_for_and_all_tools_stay():
    both = [*Chat.tools, OTHER]
    longer(lambda: chat(USER, tools=both, tool_choice="required"), lambda: chat(USER, tools=both))
    longer(lambda: chat(USER, tools=both, tool_choice="required"), lambda: chat(USER, tools=Chat.tools, tool_choice="required"))


@case(CHOICE, "thinking is the client's switch, also with a named tool; theirs switches it off")
def a_named_tool_leaves_thinking_alone():
    body = Chat.body([("user", WEATHER)], False, True, tools=True) | {"tool_choice": NAMED}
    told = ask(URL, Chat, body)[1]
    assert told.thought and told.end == "tool_calls", told


@case(CHOICE)
def a_required_call_leaves_thinking_alone():
    body = Chat.body([("user", WEATHER)], False, True, tools=True) | {"tool_choice": "required"}
    assert ask(URL, Chat, body)[1].thought


@case(CHOICE)
def a_name_that_no_tool_has_is_refused():
    choice = {"type": "function", "function": {"name": "nonexistent"}}
    refused(CHAT, {"messages": [USER], "tools": Chat.tools, "tool_choice": choice}, "tool_choice")


@case(CHOICE, "a choice that makes no sense is refused with its place; theirs is as if nothing was said")
def a_choice_that_makes_no_sense():
    for choice, place in [({"type": "function"}, "tool_choice.function"), ({"type": "other"}, "tool_choice.type"), ({}, "tool_choice.type"), ("sometimes", "tool_choice")]:
        refused(CHAT, {"messages": [USER], "tools": Chat.tools, "tool_choice": choice}, place)


@case(CHOICE)
def auto_changes_nothing():
    one_prompt(lambda: chat(USER, tools=Chat.tools), lambda: chat(USER, tools=Chat.tools, tool_choice="auto"))


@case(CHOICE, "a call that is required of no tools is refused; theirs is as if nothing was said")
def a_choice_without_tools():
    one_prompt(lambda: chat(USER), lambda: chat(USER, tools=[], tool_choice="auto"))
    refused(CHAT, {"messages": [USER], "tool_choice": "required"}, "tool_choice")


@case(CHOICE)
def none_hides_the_tools_and_nothing_is_called():
    one_prompt(lambda: chat(USER), lambda: chat(USER, tools=Chat.tools, tool_choice="none"))
    for surface, choice in [(Chat, "none"), (Responses, "none"), (Messages, {"type": "none"})]:
        told = ask(URL, surface, surface.body([("user", WEATHER)], True, False, tools=True, most=60) | {"tool_choice": choice})[1]
        assert not told.calls, told


# ---- vllm-mlx: test_streaming_* --------------------------------------------------------------------------------------------------

STREAMS = "vllm-mlx: streams"


def events(surface, **more):
    return post(URL, surface.path, surface.body(**{"turns": [("user", SUM)], "stream": True, "thinking": False} | more)).events()


@case(STREAMS)
def the_first_chunk_is_the_role_and_the_last_the_reason():
    first, *_, last, usage, done = events(Chat)
    assert first["choices"][0] == {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    assert last["choices"][0]["finish_reason"] == "stop" and last["choices"][0]["delta"] == {}
    assert usage["choices"] == [] and done == "[DONE]" and isinstance(first["created"], int)


@case(STREAMS)
def chunks_of_a_completion():
    body = {"model": "pebble", "prompt": "One, two,", "max_tokens": 5, "temperature": 0}
    streamed = post(URL, "/v1/completions", body | {"stream": True}).events()
    whole = post(URL, "/v1/completions", body).json()
    assert streamed.pop() == "[DONE]" and all(chunk["object"] == "text_completion" for chunk in [*streamed, whole])
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == whole["choices"][0]["text"]
    assert streamed[-1]["choices"][0]["finish_reason"] == "length" and streamed[-1]["usage"] == {**whole["usage"], **streamed[-1]["usage"]}


@case(STREAMS)
def words_that_json_escapes_come_through():
    for text in ['say "hi" \\ and\ttab\nnew', "grüße, 世界, 😀, \u2028"]:
        body = {"model": "pebble", "prompt": text, "max_tokens": 1, "echo": True, "temperature": 0}
        whole = post(URL, "/v1/completions", body).json()["choices"][0]["text"]
        streamed = post(URL, "/v1/completions", body | {"stream": True}).events()[:-1]
        assert whole.startswith(text) and "".join(chunk["choices"][0]["text"] for chunk in streamed) == whole


@case(STREAMS)
def a_text_is_one_block():
    starts = [event["content_block"]["type"] for event in events(Messages) if event["type"] == "content_block_start"]
    assert starts == ["text"]


@case(STREAMS)
def a_thought_and_a_text_are_two_blocks_in_order():
    starts = [(event["index"], event["content_block"]["type"]) for event in events(Messages, thinking=True) if event["type"] == "content_block_start"]
    assert starts == [(0, "thinking"), (1, "text")]


@case(STREAMS)
def a_thought_and_a_call_are_two_blocks_in_order():
    told = events(Messages, turns=[("user", WEATHER)], thinking=True, tools=True)
    starts = [(event["index"], event["content_block"]["type"]) for event in told if event["type"] == "content_block_start"]
    assert starts == [(0, "thinking"), (1, "tool_use")]
    assert told[-2]["delta"]["stop_reason"] == "tool_use"


@case(STREAMS)
def a_call_is_never_in_the_text():
    for surface in (Chat, Responses, Messages):
        for thinking in (False, True):
            body = surface.body([("user", WEATHER)], True, thinking, tools=True)
            told = ask(URL, surface, body)[1]
            assert told.text == "" and len(told.calls) == 1, told


@case(STREAMS)
def the_response_at_the_end_is_the_one_at_the_beginning():
    told = events(Responses)
    assert told[0]["response"]["id"] == told[-1]["response"]["id"] and told[-1]["type"] == "response.completed"


# ---- mlx-lm: test_server ---------------------------------------------------------------------------------------------------------

MLX_LM = "mlx-lm: server"


@case(MLX_LM)
def a_seed_draws_the_same_again():
    body = {"model": "pebble", "prompt": "Once upon a time", "max_tokens": 10, "temperature": 0.5, "top_p": 0.9, "repetition_penalty": 1.1,
            "repetition_context_size": 20, "seed": 999, "stop": "stop sequence"}
    first, second = (post(URL, "/v1/completions", body).json() for _ in range(2))
    assert first["choices"][0]["text"] == second["choices"][0]["text"] and first["id"] != second["id"]


@case(MLX_LM)
def parts_of_text_are_a_text():
    parts = [{"role": "system", "content": [{"type": "text", "text": "You help."}]}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    one_prompt(lambda: chat(system("You help."), USER), lambda: chat(*parts))


def called(arguments, content):
    call = {"id": "123", "type": "function", "function": {"name": "add", "arguments": arguments}}
    return [{"role": "user", "content": "what is 2+3?"}, {"role": "assistant", "content": content, "tool_calls": [call]},
            {"role": "tool", "content": "5", "tool_call_id": "123"}]


@case(MLX_LM)
def a_call_with_null_for_its_words():
    one_prompt(lambda: chat(*called('{"a": 2, "b": 3}', "")), lambda: chat(*called('{"a": 2, "b": 3}', None)))


@case(MLX_LM)
def arguments_as_an_object():
    one_prompt(lambda: chat(*called('{"a": 2, "b": 3}', None)), lambda: chat(*called({"a": 2, "b": 3}, None)))


@case(MLX_LM)
def no_tokens_at_all_are_refused():
    refused("/v1/completions", {"prompt": "hi", "max_tokens": 0}, "max_tokens")
    refused(CHAT, {"messages": [USER], "max_tokens": 0}, "max_tokens")
    refused("/v1/messages", {"messages": [USER], "max_tokens": 0}, "max_tokens")


@case(MLX_LM)
def models_are_listed():
    listed = send(URL, "GET", "/v1/models", headers={}).json()
    assert listed["object"] == "list" and all(model["object"] == "model" and model["created"] for model in listed["data"])
    assert "pebble" in [model["id"] for model in listed["data"]]


@case(MLX_LM)
def health_is_told():
    reply = send(URL, "GET", "/health", headers={})
    assert (reply.status, reply.json()) == (200, {"status": "ok"})


@case(MLX_LM)
def a_stream_has_one_choice_in_each_chunk():
    chunks = [event for event in events(Chat)[:-2]]
    assert chunks and all(len(chunk["choices"]) == 1 and "delta" in chunk["choices"][0] for chunk in chunks)


@case(MLX_LM)
def a_longer_prompt_finds_the_shorter_one_in_the_cache():
    chat(system("You are a helpful one."), {"role": "user", "content": "Tell me a story about"})
    told = chat(system("You are a helpful one."), {"role": "user", "content": "Tell me a story about dragons."})
    assert told.cached > 0, told


run()
