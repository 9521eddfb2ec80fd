from agents import Agent, Runner, function_tool


@function_tool(needs_approval=True)
def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted."


agent = Agent(name="Files", model="gpt-5.2", tools=[delete_file])
result = Runner.run_sync(agent, "Delete the file a.txt.")
while result.interruptions:
    state = result.to_state()
    for call in result.interruptions:
        if input(f"Run {call.name} with {call.arguments}? ") == "y":
            state.approve(call)
        else:
            state.reject(call)
    result = Runner.run_sync(agent, state)
print(result.final_output)
