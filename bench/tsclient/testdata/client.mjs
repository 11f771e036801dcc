// Connects to the command in argv, lists its tools so that their output schemas
// are known, calls each of them, and prints what came back as one JSON line each.
import { pathToFileURL } from 'node:url';
const [sdk, command, ...args] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${sdk}/${file}`).href);
const { Client } = await load('dist/esm/client/index.js');
const { StdioClientTransport } = await load('dist/esm/client/stdio.js');
const client = new Client({ name: 'test', version: '1' });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }));
const { tools } = await client.listTools();
for (const { name } of tools) {
  try {
    console.log(JSON.stringify({ name, result: await client.callTool({ name, arguments: {} }) }));
  } catch (error) {
    console.log(JSON.stringify({ name, thrown: String(error) }));
  }
}
await client.close();
