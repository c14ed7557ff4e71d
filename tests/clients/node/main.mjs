// The official clients for Node, asked by lines of JSON on stdin; each is answered by one line on stdout.
//
// Asked: {client, operation, url, key, body, token?}. Answered: {value, items, error}, where items are the
// chunks or events of a stream as far as it came and value is what the operation returned.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The packages are installed in a folder of their own, which is the first argument.
const require = createRequire(process.argv[2] + "/");
const OpenAI = require("openai").OpenAI;
const Anthropic = require("@anthropic-ai/sdk").Anthropic;

const clients = new Map();

function clientOf({ client, url, key, token }) {
  const name = [client, url, key, token].join(" ");
  if (!clients.has(name)) {
    const common = { baseURL: url, maxRetries: 0, timeout: 30_000 };
    const made =
      client === "openai"
        ? new OpenAI({ ...common, apiKey: key })
        : new Anthropic({ ...common, apiKey: token ? null : key, authToken: token ?? null });
    clients.set(name, made);
  }
  return clients.get(name);
}

// One folder of functions per client: what a program would write, item by item where something is streamed.
const openai = {
  create: (client, body) => client.chat.completions.create(body),
  async stream(client, body, items) {
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) items.push(chunk);
  },
  async helper(client, body, items) {
    const stream = client.chat.completions.stream(body);
    stream.on("chunk", (chunk) => items.push(chunk));
    return await stream.finalChatCompletion();
  },
  async models(client, body, items) {
    for await (const model of client.models.list()) items.push(model);
  },
  retrieve: (client, body) => client.models.retrieve(body.model),
  embeddings: (client, body) => client.embeddings.create(body),
  completions: (client, body) => client.completions.create(body),
  responses: (client, body) => client.responses.create(body),
  async responsesStream(client, body, items) {
    for await (const event of await client.responses.create({ ...body, stream: true })) items.push(event);
  },
  async raw(client, body) {
    const { data, response } = await client.chat.completions.create(body).withResponse();
    return { data, status: response.status, requestId: response.headers.get("x-request-id") };
  },
};

const anthropic = {
  create: (client, body) => client.messages.create(body),
  async stream(client, body, items) {
    for await (const event of await client.messages.create({ ...body, stream: true })) items.push(event);
  },
  async helper(client, body, items) {
    const stream = client.messages.stream(body);
    stream.on("streamEvent", (event) => items.push(event));
    return await stream.finalMessage();
  },
  async models(client, body, items) {
    for await (const model of client.models.list(body ?? {})) items.push(model);
  },
  retrieve: (client, body) => client.models.retrieve(body.model),
  countTokens: (client, body) => client.messages.countTokens(body),
  async raw(client, body) {
    const { data, response } = await client.messages.create(body).withResponse();
    return { data, status: response.status, requestId: response.headers.get("x-request-id") };
  },
};

const operations = { openai, anthropic };

async function answer(asked) {
  // Copies, as the helpers of the clients go on changing what they handed out.
  const taken = [];
  const items = { push: (item) => taken.push(structuredClone(item)) };
  const told = { value: null, items: taken, error: null };
  try {
    const operation = operations[asked.client][asked.operation];
    told.value = (await operation(clientOf(asked), asked.body, items)) ?? null;
  } catch (error) {
    told.error = { name: error.constructor.name, message: String(error.message), status: error.status ?? null };
    told.headers = Object.fromEntries(error.headers ?? []);
  }
  return told;
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
}
