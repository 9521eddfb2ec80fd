// OpenAI's SDK: Chat Completions and Responses, by hand and with the SDK's runners.

import OpenAI from "openai";
import { ResponsesToolRunner } from "openai/helpers/responses-tool-runner";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { z } from "zod";
import { DESCRIPTION, EXTRACT, PARAMETERS, QUESTION, baseUrl, refusalOf, tell, weatherStation } from "./flows.mjs";

const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: "sk-test", maxRetries: 0 });
const Person = z.object({ name: z.string(), age: z.number().int() });

const declared = { name: "get_weather", description: DESCRIPTION, parameters: PARAMETERS, strict: true };
const chat = { model: "gpt-5.2", tools: [{ type: "function", function: declared }] };
const responses = { model: "gpt-5.6-terra", tools: [{ type: "function", ...declared }] };
const asked = [{ role: "user", content: QUESTION }];

async function chatFlow(complete) {
  const { cities, weather } = weatherStation();
  const { message } = (await complete({ ...chat, messages: asked })).choices[0];
  const results = message.tool_calls.map((call) => ({
    role: "tool",
    tool_call_id: call.id,
    content: weather(JSON.parse(call.function.arguments)),
  }));
  const last = await complete({ ...chat, messages: [...asked, message, ...results] });
  return { cities, text: last.choices[0].message.content };
}

async function chatRunner(stream) {
  const { cities, weather } = weatherStation();
  const run = { ...declared, parse: JSON.parse, function: weather };
  const runner = client.chat.completions.runTools({
    model: chat.model,
    messages: asked,
    tools: [{ type: "function", function: run }],
    stream,
  });
  return { cities, text: await runner.finalContent() };
}

// What the SDK parsed is no part of the API: a history has to be rid of it.
async function responsesFlow(respond, kept = toResponseInputItems) {
  const { cities, weather } = weatherStation();
  const first = await respond({ ...responses, input: asked });
  const results = first.output
    .filter((item) => item.type === "function_call")
    .map((call) => ({
      type: "function_call_output",
      call_id: call.call_id,
      output: weather(JSON.parse(call.arguments)),
    }));
  const last = await respond({ ...responses, input: [...asked, ...kept(first.output), ...results] });
  return { cities, text: last.output_text };
}

async function responsesRunner(options) {
  const { cities, weather } = weatherStation();
  const runner = new ResponsesToolRunner({ functions: [{ tool: responses.tools[0], execute: weather }] });
  const last = await runner.run(client, { model: responses.model, input: QUESTION }, options);
  return { cities, text: last.output_text };
}

const streamed = (body) => client.responses.stream(body).finalResponse();

await tell({
  "chat whole": () => chatFlow((body) => client.chat.completions.create(body)),
  "chat streamed": () => chatFlow((body) => client.chat.completions.stream(body).finalChatCompletion()),
  "chat runner whole": () => chatRunner(false),
  "chat runner streamed": () => chatRunner(true),
  "responses whole": () => responsesFlow((body) => client.responses.create(body)),
  "responses streamed": () => responsesFlow(streamed),
  "responses not stored": () => responsesFlow((body) => client.responses.create({ ...body, store: false })),
  "responses runner whole": () => responsesRunner({}),
  "responses runner streamed": () => responsesRunner({ stream: true }),
  "responses runner eager": () => responsesRunner({ stream: true, eager: true }),
  "chat parsed": async () => {
    const reply = await client.chat.completions.parse({
      model: chat.model,
      messages: [{ role: "user", content: EXTRACT }],
      response_format: zodResponseFormat(Person, "person"),
    });
    return reply.choices[0].message.parsed;
  },
  "responses parsed": async () => {
    const text = { format: zodTextFormat(Person, "person") };
    return (await client.responses.parse({ model: responses.model, input: EXTRACT, text })).output_parsed;
  },
  "chat refused": () => refusalOf(() => client.chat.completions.create({ ...chat, messages: [] })),
  "responses refused with what was parsed": () => refusalOf(() => responsesFlow(streamed, (items) => items)),
  "responses refused": () => refusalOf(() => client.responses.create({ ...responses, input: QUESTION, seed: 1 })),
});
