// A server of the TypeScript SDK whose tools take their time or block the event loop.
//
//   node server.mjs SDK [--start SECONDS] [--http HOST:PORT] [--json]
//
// Over HTTP each session has its own Server, as the SDK's examples do it; --json answers
// with a body instead of a stream.
import { createServer } from 'node:http';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [sdk, ...args] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${sdk}/dist/esm/${file}`).href);
const { Server } = await load('server/index.js');
const { StdioServerTransport } = await load('server/stdio.js');
const { StreamableHTTPServerTransport } = await load('server/streamableHttp.js');
const types = await load('types.js');

const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const block = (seconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000);
const wait = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

const tools = {
  wait: async ({ key, seconds }) => (await wait(seconds), `done ${key}`),
  block: ({ key, seconds }) => (block(seconds), `done ${key}`),
  exec: ({ key, seconds }) => (execFileSync('sleep', [String(seconds)]), `done ${key}`),
  spin: ({ key, seconds }) => {
    for (const end = Date.now() + seconds * 1000; Date.now() < end; );
    return `done ${key}`;
  },
  big: ({ bytes }) => 'x'.repeat(bytes),
  pid: () => String(process.pid),
  progress: async ({ key, seconds, count }, extra) => {
    for (let i = 1; i <= count; i++) {
      await wait(seconds / count);
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken: extra._meta.progressToken, progress: i, total: count },
      });
    }
    return `done ${key}`;
  },
  ask: async ({ key }, extra) => {
    const request = {
      method: 'elicitation/create',
      params: {
        message: `name of ${key}?`,
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
      },
    };
    const answer = await extra.sendRequest(request, types.ElicitResultSchema, { timeout: 600_000 });
    return `answer ${answer.content.name}`;
  },
};

function newServer() {
  const server = new Server({ name: 'typescript', version: '1' }, { capabilities: { tools: {} } });
  const inputSchema = {
    type: 'object',
    properties: { key: { type: 'string' }, seconds: { type: 'number' }, bytes: { type: 'integer' }, count: { type: 'integer' } },
  };
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema })),
  }));
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params }, extra) => ({
    content: [{ type: 'text', text: await tools[params.name](params.arguments, extra) }],
  }));
  return server;
}

block(Number(option('--start') ?? 0));
if (!option('--http')) {
  await newServer().connect(new StdioServerTransport());
} else {
  const [host, port] = option('--http').split(':');
  const sessions = new Map();
  createServer(async (req, res) => {
    let transport = sessions.get(req.headers['mcp-session-id']);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: args.includes('--json'),
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await newServer().connect(transport);
    }
    await transport.handleRequest(req, res);
  }).listen(Number(port), host);
}
