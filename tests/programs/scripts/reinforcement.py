"""Agents of stable-baselines3 on an environment of gymnasium."""
# kind: training
# requires: stable-baselines3
# cases: PPO A2C DQN

import sys

import stable_baselines3
from shown import show

kind = getattr(stable_baselines3, sys.argv[1])
options = {"learning_starts": 20, "buffer_size": 200} if sys.argv[1] == "DQN" else {"n_steps": 32}
if sys.argv[1] == "PPO":
    options |= {"batch_size": 16, "n_epochs": 2}
agent = kind("MlpPolicy", "CartPole-v1", seed=0, device="cpu", policy_kwargs={"net_arch": [16]}, **options)
agent.learn(96)
show("weights", *agent.policy.parameters())
observation = agent.get_env().reset()
show("actions", [int(agent.predict(observation + 0.01 * i, deterministic=True)[0][0]) for i in range(8)])
