//! Programs in Python that a test writes: servers of tools, and a model that says what it is told to.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of tools: `get_weather` only reads, `write_note` does not and writes a file beside it, `sleep` lasts,
/// `flood` has a long result. It says a word on standard error when it starts, and writes its id into the file `pid`.
const SERVER: &str = r#"
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
def tool(name, description, properties, read_only):
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in properties}, "required": properties}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": read_only, "openWorldHint": False}}
TOOLS = [tool("get_weather", "Tells the weather.\nIn a city.", ["city"], True), tool("write_note", "Writes.", ["text"], False),
         tool("sleep", "Sleeps.", [], True), tool("flood", "Says much.", [], True)]
with open(os.path.join(folder, "pid"), "w") as file:
    file.write(str(os.getpid()))
print("weather station 7", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        name, arguments = params["name"], params.get("arguments") or {}
        with open(os.path.join(folder, "calls"), "a") as calls:
            calls.write(name + "\n")
        if name == "sleep":
            time.sleep(60)
        text = {"get_weather": f"sunny in {arguments.get('city')}", "flood": "x" * 100000}.get(name, "written")
        result = {"content": [{"type": "text", "text": text}]}
    else:
        continue
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A model behind OpenAI's API. The last question is a JSON list of its responses: a text, in which `RESULTS` stands
/// for the results of tools so far, or a list of calls, each a name and its arguments.
const MODEL: &str = r#"
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "told", "object": "model"}]}).encode())
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = asked["messages"]
        asked_at = max(i for i, m in enumerate(messages) if m["role"] == "user")
        # Passages of documents come before the question.
        script = json.loads(messages[asked_at]["content"].rsplit("\n", 1)[-1])
        number = sum(m["role"] == "assistant" for m in messages[asked_at:])
        said = script[min(number, len(script) - 1)]
        if isinstance(said, str):
            results = [m["content"] for m in messages if m["role"] == "tool"]
            delta, reason = {"content": said.replace("RESULTS", json.dumps(results))}, "stop"
        else:
            calls = [{"index": i, "id": f"call{number}{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                     for i, (name, arguments) in enumerate(said)]
            delta, reason = {"tool_calls": calls}, "tool_calls"
        chunk = lambda delta, reason: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "told",
                                       "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        lines = [chunk({"role": "assistant", **delta}, None), chunk({}, reason)]
        events = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
        self.reply("text/event-stream", events.encode())
server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// The server of tools as a file in this folder.
pub fn tool_server(folder: &Path) -> PathBuf {
    let file = folder.join("server.py");
    fs::write(&file, SERVER).expect("written");
    file
}

/// The model, as a process. It ends with this.
pub struct ToldModel {
    process: Child,
    /// The address of its API.
    pub url: String,
}

impl ToldModel {
    /// With its program in this folder.
    pub fn start(folder: &Path) -> Self {
        let file = folder.join("model.py");
        fs::write(&file, MODEL).expect("written");
        let mut python = Command::new("python3");
        let mut process = python.arg(file).stdout(Stdio::piped()).spawn().expect("python3 starts");
        let mut port = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut port).expect("a line");
        let url = format!("http://127.0.0.1:{}/v1", port.trim());
        Self { process, url }
    }
}

impl Drop for ToldModel {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
