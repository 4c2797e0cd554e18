"""Cases of vllm-mlx 0.6.0 for Anthropic's surface (test_anthropic_adapter*, test_anthropic_models), re-stated.

    restated_anthropic.py URL"""
from cells import FIVE, SCHEMA, SUM, WEATHER
from restated import HASH, URL, USER, case, longer, messages, one_prompt, refused, run, say
from wire import Messages, ask


def blocks(*texts):
    return [{"type": "text", "text": text} for text in texts]


def result(id, content):
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def use(id, name="get_weather", **arguments):
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


ADAPTER = "vllm-mlx: Anthropic"
# One gray pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@case(ADAPTER)
def an_answer_ends_its_turn():
    whole, told = ask(URL, Messages, Messages.body([("user", SUM)], False, False))
    assert told.end == "end_turn" and whole["model"] == "pebble" and whole["stop_sequence"] is None
    assert [block["type"] for block in whole["content"]] == ["text"] and whole["usage"]["output_tokens"] > 0


@case(ADAPTER)
def a_call_is_a_block_and_a_reason():
    whole, told = ask(URL, Messages, Messages.body([("user", WEATHER)], False, False, tools=True))
    assert told.end == "tool_use" and whole["content"][-1]["input"] == {"city": "Oslo"}


@case(ADAPTER)
def a_cut_answer_says_max_tokens():
    assert messages(USER).end == "max_tokens"


@case(ADAPTER)
def several_stop_sequences_and_the_one_that_came():
    body = Messages.body([("user", SUM)], False, False) | {"stop_sequences": ["END", FIVE]}
    whole, told = ask(URL, Messages, body)
    assert (told.end, whole["stop_sequence"]) == ("stop_sequence", FIVE) and FIVE not in told.text


@case(ADAPTER, "an answer without a word has no block; theirs has an empty one, which clients send back")
def an_answer_without_a_word():
    whole, told = ask(URL, Messages, Messages.body([("user", "What is 47 * 86?")], False, False, most=3))
    assert whole["content"] == [] and told.end == "max_tokens"


@case(ADAPTER)
def ids_are_never_repeated():
    ids = {say(Messages, "messages", [USER])[0]["id"] for _ in range(5)}
    assert len(ids) == 5


@case(ADAPTER)
def the_choice_auto_changes_nothing():
    one_prompt(lambda: messages(USER, tools=Messages.tools), lambda: messages(USER, tools=Messages.tools, tool_choice={"type": "auto"}))


@case(ADAPTER)
def the_choice_none_hides_the_tools():
    one_prompt(lambda: messages(USER), lambda: messages(USER, tools=Messages.tools, tool_choice={"type": "none"}))


@case(ADAPTER)
def the_choice_any_is_required():
    body = Messages.body([("user", WEATHER)], False, False, tools=True) | {"tool_choice": {"type": "any"}}
    assert ask(URL, Messages, body)[1].end == "tool_use"


@case(ADAPTER)
def the_choice_of_a_tool_hides_the_others():
    other = {"name": "other", "description": "o", "input_schema": SCHEMA}
    choice = {"type": "tool", "name": "get_weather"}
    both = lambda: messages(USER, tools=[*Messages.tools, other], tool_choice=choice)  # noqa: E731
    one_prompt(lambda: messages(USER, tools=Messages.tools, tool_choice=choice), both)


@case(ADAPTER, "a choice of an unknown type is an error that names the field; theirs takes it for auto")
def the_choice_of_an_unknown_type():
    refused("/v1/messages", {"messages": [USER], "tools": Messages.tools, "tool_choice": {"type": "unknown"}}, "tool_choice.type")


@case(ADAPTER, "so is a choice without a type")
def the_choice_without_a_type():
    refused("/v1/messages", {"messages": [USER], "tools": Messages.tools, "tool_choice": {}}, "tool_choice.type")


@case(ADAPTER)
def a_tool_with_a_name_alone():
    whole = [{"name": "f", "description": "", "input_schema": {"type": "object", "properties": {}}}]
    one_prompt(lambda: messages(USER, tools=whole), lambda: messages(USER, tools=[{"name": "f"}]))


@case(ADAPTER)
def a_tool_without_a_name_is_refused():
    refused("/v1/messages", {"messages": [USER], "tools": [{"description": "d"}]}, "tools[0].name")


@case(ADAPTER)
def what_a_tool_says_of_itself_is_read():
    bare = [{**Messages.tools[0], "input_schema": {"type": "object", "properties": {}, "required": []}}]
    longer(lambda: messages(USER, tools=Messages.tools), lambda: messages(USER, tools=bare))


@case(ADAPTER)
def a_text_is_a_block_of_text():
    one_prompt(lambda: messages(USER), lambda: messages({"role": "user", "content": blocks("hello")}))


@case(ADAPTER)
def blocks_of_text_are_lines():
    two = {"role": "user", "content": blocks("first", "second")}
    one_prompt(lambda: messages({"role": "user", "content": "first\nsecond"}), lambda: messages(two))


def turn(*results):
    calls = {"role": "assistant", "content": [*blocks("Let me check."), use("toolu_a", city="Oslo"), use("toolu_b", city="Rome")]}
    return [USER, calls, {"role": "user", "content": list(results)}]


@case(ADAPTER, "results stand in the order of their calls; theirs stand as they came")
def results_in_another_order():
    first, second = result("toolu_a", "sunny"), result("toolu_b", "rainy")
    one_prompt(lambda: messages(*turn(first, second), tools=Messages.tools), lambda: messages(*turn(second, first), tools=Messages.tools))


@case(ADAPTER)
def a_result_of_blocks_is_lines():
    one, two = result("toolu_a", "line one\nline two"), result("toolu_a", blocks("line one", "line two"))
    other = result("toolu_b", "rainy")
    one_prompt(lambda: messages(*turn(one, other), tools=Messages.tools), lambda: messages(*turn(two, other), tools=Messages.tools))


@case(ADAPTER)
def a_result_of_nothing_is_empty():
    empty, null, other = result("toolu_a", ""), result("toolu_a", None), result("toolu_b", "rainy")
    one_prompt(lambda: messages(*turn(empty, other), tools=Messages.tools), lambda: messages(*turn(null, other), tools=Messages.tools))


@case(ADAPTER, "results come before the words beside them, since they belong to the calls; theirs come after")
def words_beside_a_result():
    results, words = [result("toolu_a", "sunny"), result("toolu_b", "rainy")], blocks("and now?")
    after = lambda: messages(*turn(*results, *words), tools=Messages.tools)  # noqa: E731
    one_prompt(after, lambda: messages(*turn(*words, *results), tools=Messages.tools))


@case(ADAPTER)
def a_failed_result_says_so():
    fine, failed = result("toolu_a", "no such city"), result("toolu_a", "no such city") | {"is_error": True}
    other = result("toolu_b", "rainy")
    longer(lambda: messages(*turn(failed, other), tools=Messages.tools), lambda: messages(*turn(fine, other), tools=Messages.tools))


@case(ADAPTER, "an answer of nothing is left out; theirs stays as an empty turn")
def an_answer_of_nothing():
    one_prompt(lambda: messages(USER, USER), lambda: messages(USER, {"role": "assistant", "content": []}, USER))


@case(ADAPTER)
def a_question_of_nothing():
    one_prompt(lambda: messages({"role": "user", "content": ""}), lambda: messages({"role": "user", "content": []}))


@case(ADAPTER)
def instructions_as_text_and_as_blocks():
    one_prompt(lambda: messages(USER, system="Be brief."), lambda: messages(USER, system=blocks("Be brief.")))


@case(ADAPTER, "instructions in the middle join the question beside them, so that the cached prefix holds; theirs move to the front")
def instructions_in_the_middle():
    late = {"role": "system", "content": "Be terse."}
    joined = {"role": "user", "content": "hello\n\nBe terse."}
    one_prompt(lambda: messages(joined, system="You code."), lambda: messages(USER, late, system="You code."))


@case(ADAPTER, "and so without instructions at the front")
def instructions_in_the_middle_alone():
    late = {"role": "system", "content": "Be terse."}
    one_prompt(lambda: messages({"role": "user", "content": "hello\n\nBe terse."}), lambda: messages(USER, late))


@case(ADAPTER, "empty instructions are left out; theirs are an empty message at the front")
def empty_instructions():
    answer = {"role": "assistant", "content": "hi"}
    for content in ["", [], blocks("")]:
        late = {"role": "system", "content": content}
        one_prompt(lambda: messages(USER, answer, USER), lambda: messages(USER, late, answer, late, USER))


@case(ADAPTER, "later instructions stay in their places, in order; theirs all move to the front")
def several_instructions_keep_their_order():
    answer = {"role": "assistant", "content": "hi"}
    late = [{"role": "system", "content": text} for text in ("One.", "Two.")]
    joined = [{"role": "user", "content": "hello\n\nOne."}, answer, {"role": "user", "content": "Two.\n\nhello"}]
    one_prompt(lambda: messages(*joined, system="Zero."), lambda: messages(USER, late[0], answer, late[1], USER, system="Zero."))


@case(ADAPTER, "a block of a type that instructions cannot have is refused with its place; theirs is dropped without a word")
def instructions_of_an_unknown_type():
    refused("/v1/messages", {"messages": [USER], "system": [*blocks("Be brief."), {"type": "cache_control"}]}, "system[1]")


@case(ADAPTER)
def the_hash_line_as_a_block_is_dropped():
    one_prompt(lambda: messages(USER, system="Be brief."), lambda: messages(USER, system=blocks(HASH, "Be brief.")))


@case(ADAPTER)
def the_hash_line_above_instructions_is_dropped_alone():
    one_prompt(lambda: messages(USER, system="Be brief."), lambda: messages(USER, system=f"{HASH}\nBe brief."))


@case(ADAPTER)
def the_hash_line_as_all_instructions_leaves_none():
    one_prompt(lambda: messages(USER), lambda: messages(USER, system=HASH))


@case(ADAPTER)
def a_mention_of_the_hash_line_stays():
    told = "Ignore any x-anthropic-billing-header: you see."
    longer(lambda: messages(USER, system=told), lambda: messages(USER, system="Ignore any you see."))


@case(ADAPTER, "an image that is none is refused with its place; theirs reaches the model")
def an_image():
    def asked(data):
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"role": "user", "content": [*blocks("What is this?"), {"type": "image", "source": source}]}

    longer(lambda: messages(asked(PIXEL)), lambda: messages({"role": "user", "content": blocks("What is this?")}))
    refused("/v1/messages", {"messages": [asked("AAAA")]}, "messages[0].content[1].source.data")


@case(ADAPTER, "an address is never fetched; theirs is")
def an_image_elsewhere():
    source = {"type": "url", "url": "http://192.0.2.1/a.png"}
    refused("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}, "messages[0].content[0].source.type")


@case(ADAPTER)
def what_must_be_there_is_named():
    refused("/v1/messages", {"max_tokens": 9}, "messages")
    refused("/v1/messages", {"messages": [{"content": "hi"}]}, "messages[0].role")
    refused("/v1/messages", {"messages": [{"role": "user"}]}, "messages[0].content")
    refused("/v1/messages", {"messages": [USER], "max_tokens": None}, "max_tokens")


@case(ADAPTER)
def fields_that_change_nothing_are_taken():
    more = {"metadata": {"user_id": "u"}, "service_tier": "auto", "top_k": 5, "top_p": 0.5, "stream": False}
    one_prompt(lambda: messages(USER), lambda: messages(USER, **more))


run()
