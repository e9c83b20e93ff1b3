"""The evaluation: tasks and class orders, Ψ metrics, the offline ideal, the demonstration."""
