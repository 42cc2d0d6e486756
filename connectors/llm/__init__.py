"""Language models behind the engine's port: two vendors, recorded answers, prices and embeddings."""
