from dragoman import Agent, McpServer

agent = Agent("gpt-5.2", tools=[McpServer("python weather_server.py")])
print(agent.run_sync("What is the weather in Oslo?").text)
