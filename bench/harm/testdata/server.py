"""An MCP server written by hand: the Python SDK cannot be installed where this runs.

    python3 server.py [--start SECONDS] [--list SECONDS] [--http HOST:PORT]

It has one thread, as servers with a blocking tool have: while a tool runs nothing else
is read or answered. Over HTTP it serves one connection at a time.
"""
import http.server
import json
import os
import subprocess
import sys
import time


def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def call(name, arguments):
    if name == "block":
        time.sleep(arguments["seconds"])
        return "done " + arguments["key"]
    if name == "pid":
        return str(os.getpid())
    if name == "detach":
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return str(subprocess.Popen(["sleep", "300"], start_new_session=True, **quiet).pid)
    raise KeyError(name)


def answer(message):
    """The reply to a message, None for a notification."""
    if "id" not in message:
        return None
    method, params = message.get("method"), message.get("params") or {}
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        reply["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "python by hand", "version": "1"}}
    elif method == "ping":
        reply["result"] = {}
    elif method == "tools/list":
        time.sleep(float(option("--list", 0)))
        reply["result"] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("block", "pid", "detach")]}
    elif method == "tools/call":
        text = call(params["name"], params.get("arguments") or {})
        reply["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    return reply


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        reply = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(202 if reply is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


time.sleep(float(option("--start", 0)))
if option("--http"):
    host, port = option("--http").split(":")
    http.server.HTTPServer((host, int(port)), Handler).serve_forever()
for line in sys.stdin:
    reply = answer(json.loads(line))
    if reply is not None:
        print(json.dumps(reply), flush=True)
