// All three SDKs, pointed at a gateway whose upstreams fail: what each heard before its answer ended or broke.
// The second argument is a file of cells; each has a name, a client, a model, and whether it is streamed.

import { readFile } from "node:fs/promises";
import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

const [baseUrl, file] = process.argv.slice(2);
const AT_ONCE = 8;
const openai = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: "any", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: baseUrl, apiKey: "any", maxRetries: 0 });
const genai = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl } });
const messages = [{ role: "user", content: "hello" }];

function hearGemini(chunk, heard) {
  heard.text += chunk.text ?? "";
  heard.finish = chunk.candidates?.[0]?.finishReason ?? heard.finish;
}

const listeners = {
  chat: async ({ model, streamed }, heard) => {
    if (!streamed) {
      const [choice] = (await openai.chat.completions.create({ model, messages })).choices;
      Object.assign(heard, { text: choice.message.content, finish: choice.finish_reason });
      return;
    }
    for await (const chunk of await openai.chat.completions.create({ model, messages, stream: true })) {
      heard.text += chunk.choices[0]?.delta.content ?? "";
      heard.finish = chunk.choices[0]?.finish_reason ?? heard.finish;
    }
  },
  responses: async ({ model, streamed }, heard) => {
    const asked = { model, input: "hello", store: false };
    if (!streamed) {
      const response = await openai.responses.create(asked);
      Object.assign(heard, { text: response.output_text, finish: response.status });
      return;
    }
    for await (const event of await openai.responses.create({ ...asked, stream: true })) {
      if (event.type === "response.output_text.delta") heard.text += event.delta;
      if (event.response) heard.finish = event.response.status === "in_progress" ? "" : event.response.status;
    }
  },
  messages: async ({ model, streamed }, heard) => {
    const asked = { model, messages, max_tokens: 200 };
    const stream = streamed ? anthropic.messages.stream(asked).on("text", (text) => (heard.text += text)) : undefined;
    const message = await (stream ? stream.finalMessage() : anthropic.messages.create(asked));
    heard.finish = message.stop_reason;
  },
  gemini: async ({ model, streamed }, heard) => {
    const asked = { model, contents: "hello" };
    if (!streamed) {
      hearGemini(await genai.models.generateContent(asked), heard);
      return;
    }
    for await (const chunk of await genai.models.generateContentStream(asked)) hearGemini(chunk, heard);
  },
};
const typed = { chat: OpenAI.APIError, responses: OpenAI.APIError, messages: Anthropic.APIError, gemini: ApiError };

async function listen(cell) {
  const heard = { text: "", finish: "", error: null };
  try {
    await listeners[cell.client](cell, heard);
  } catch (error) {
    const { name } = error.constructor;
    heard.error = { name, status: error.status ?? 0, typed: error instanceof typed[cell.client], message: error.message };
  }
  return heard;
}

const waiting = JSON.parse(await readFile(file, "utf8"));
const told = {};
async function work() {
  for (let cell = waiting.shift(); cell; cell = waiting.shift()) told[cell.name] = await listen(cell);
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
process.stdout.write(JSON.stringify(told));
