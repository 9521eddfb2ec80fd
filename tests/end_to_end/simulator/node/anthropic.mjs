// Anthropic's SDK, direct and on Vertex: by hand and with the SDK's tool runner.

import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { AnthropicVertex } from "@anthropic-ai/vertex-sdk";
import { OAuth2Client } from "google-auth-library";
import { z } from "zod";
import { DESCRIPTION, EXTRACT, PARAMETERS, QUESTION, baseUrl, refusalOf, tell, weatherStation } from "./flows.mjs";

const authClient = new OAuth2Client();
authClient.setCredentials({ access_token: "token" });
const direct = new Anthropic({ baseURL: baseUrl, apiKey: "sk-ant-test", maxRetries: 0 });
const vertex = new AnthropicVertex({
  baseURL: `${baseUrl}/v1`,
  region: "us-east5",
  projectId: "p",
  authClient,
  maxRetries: 0,
});

const Person = z.object({ name: z.string(), age: z.number().int() });
const asked = [{ role: "user", content: QUESTION }];
const question = {
  model: "claude-opus-5-5",
  max_tokens: 2048,
  tools: [{ name: "get_weather", description: DESCRIPTION, input_schema: PARAMETERS }],
};
const thinking = { type: "adaptive", display: "summarized" };

const told = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

async function flow(say) {
  const { cities, weather } = weatherStation();
  const first = await say({ ...question, messages: asked });
  const results = first.content
    .filter((block) => block.type === "tool_use")
    .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: weather(block.input) }));
  const history = [...asked, { role: "assistant", content: first.content }, { role: "user", content: results }];
  return { cities, text: told(await say({ ...question, messages: history })) };
}

async function runner(client, stream, more = {}) {
  const { cities, weather } = weatherStation();
  const tool = betaTool({ name: "get_weather", description: DESCRIPTION, inputSchema: PARAMETERS, run: weather });
  const running = client.beta.messages.toolRunner({ ...question, ...more, tools: [tool], messages: asked, stream });
  return { cities, text: told(await running.runUntilDone()) };
}

async function parsed(client) {
  const reply = await client.messages.parse({
    model: question.model,
    max_tokens: 2048,
    messages: [{ role: "user", content: EXTRACT }],
    output_config: { format: zodOutputFormat(Person) },
  });
  return reply.parsed_output;
}

function flowsOf(form, client) {
  return {
    [`${form} whole`]: () => flow((body) => client.messages.create(body)),
    [`${form} streamed`]: () => flow((body) => client.messages.stream(body).finalMessage()),
    [`${form} thinking whole`]: () => flow((body) => client.messages.create({ ...body, thinking })),
    [`${form} thinking streamed`]: () => flow((body) => client.messages.stream({ ...body, thinking }).finalMessage()),
    [`${form} runner whole`]: () => runner(client, false),
    [`${form} runner streamed`]: () => runner(client, true),
    [`${form} runner thinking`]: () => runner(client, true, { thinking }),
    [`${form} parsed`]: () => parsed(client),
    [`${form} refused`]: () => refusalOf(() => client.messages.create({ ...question, messages: [] })),
  };
}

await tell({ ...flowsOf("direct", direct), ...flowsOf("vertex", vertex) });
