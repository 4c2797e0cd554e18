"""OpenAI's SDK for Python with the tool `file_search`, whole and streamed. Prints what it read as a JSON object.

    file_search.py URL COLLECTION    where the model searches once and cites the first passage (server/tests)"""
import json
import sys

import openai

URL, COLLECTION = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=f"{URL}/v1", api_key="local", max_retries=0, timeout=120)
FIELDS = {
    "model": "pebble",
    "input": "When does the ferry leave?",
    "tools": [{"type": "file_search", "vector_store_ids": [COLLECTION], "max_num_results": 3}],
    "include": ["file_search_call.results"],
}


def told(response):
    """The search and the citations of a response, as the SDK's own types have them."""
    search = next(item for item in response.output if item.type == "file_search_call")
    message = next(item for item in response.output if item.type == "message")
    cited = [note for part in message.content for note in part.annotations if note.type == "file_citation"]
    files = {result.file_id: result.filename for result in search.results}
    return {
        "status": search.status,
        "queries": search.queries,
        "cited": [files[note.file_id] for note in cited],
        "text": response.output_text,
    }


whole = client.responses.create(**FIELDS)
with client.responses.stream(**FIELDS) as stream:
    kinds = [event.type for event in stream]
    streamed = stream.get_final_response()
following = client.responses.create(model="pebble", input="Sure?", previous_response_id=whole.id)
try:
    client.responses.create(**{**FIELDS, "tools": [{"type": "file_search", "vector_store_ids": ["other"]}]})
    refused = None
except openai.NotFoundError as error:
    refused = error.param
print(json.dumps({
    "whole": told(whole),
    "streamed": told(streamed),
    "events": [kind for kind in kinds if "file_search" in kind or "annotation" in kind],
    "following": following.output_text,
    "stores": [(store.id, store.name) for store in client.vector_stores.list()],
    "refused": refused,
}))
