from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

agent = Agent("openai:gpt-5.2", toolsets=[MCPToolset("weather_server.py")])
print(agent.run_sync("What is the weather in Oslo?").output)
