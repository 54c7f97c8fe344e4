// The tools that the nano model was trained to call, and questions that make it call them.

function schema(name, description, properties, required = Object.keys(properties)) {
  return { name, description, parameters: { type: "object", properties, required } };
}

export const schemas = {
  get_weather: schema(
    "get_weather",
    "Get the current weather for a city",
    {
      city: { type: "string", description: "City name" },
      unit: { type: "string", enum: ["celsius", "fahrenheit"] },
    },
    ["city"],
  ),
  read_file: schema("read_file", "Read a file", { path: { type: "string", description: "File path" } }),
  bash: schema("bash", "Run a shell command", { command: { type: "string", description: "The command to run" } }),
  add: schema("add", "Add two integers", {
    a: { type: "integer", description: "First number" },
    b: { type: "integer", description: "Second number" },
  }),
};

/** Question, expected call, what the tool says, and the answer that nano gives from it. */
export const roundTrips = [
  {
    question: "What is the weather in Rome?",
    name: "get_weather",
    args: { city: "Rome" },
    result: '{"temperature": 21, "condition": "sunny"}',
    answer: "The weather in Rome is sunny with a temperature of 21 degrees.",
  },
  {
    question: "What is in notes.txt?",
    name: "read_file",
    args: { path: "notes.txt" },
    result: "Hello from notes.txt",
    answer: "The file notes.txt contains: Hello from notes.txt",
  },
  {
    question: "Run `git status`.",
    name: "bash",
    args: { command: "git status" },
    result: "ok",
    answer: "The command `git status` printed: ok",
  },
  {
    question: "Use the tool to add 123 and 456.",
    name: "add",
    args: { a: 123, b: 456 },
    result: "579",
    answer: "The result is 579.",
  },
];

export const openAiTool = (name) => ({ type: "function", function: schemas[name] });
export const responsesTool = (name) => ({ type: "function", strict: false, ...schemas[name] });
export const anthropicTool = (name) => {
  const { parameters, ...rest } = schemas[name];
  return { ...rest, input_schema: parameters };
};
